/* Kelpie: producers. Client commands with (sender, turn), kept outcomes, chosen and generated ids, unique keys, cancel, revive,
 * promotion, over a network that loses, copies and delays. Sessions, holders and epochs are in claims.pml.
 *
 * One process, guarded atomic steps; each Redis script is one step. 2 clients with a programme of 2 calls each (-DK0 -DA0 -DB0: kind
 * and items of call 0, an item is an id + 1, 0 = none), 2 workers with 1 slot each (their network is in claims.pml; a late settle comes
 * here from a reclaim under a running handler), J ids, one unique key. There is no time: whatever may last is any length.
 *
 * Protections, each switched off by -D<NAME>=0 to see what it is good for:
 *   TURN      Redis refuses a turn of a sender that is not higher than the last one
 *   KEPT      an equal turn gets the kept outcomes (0: they are guessed from what is there now)
 *   ONCE      a turn that was given up is never used for anything else (0: its number is used again)
 *   SEEN      twins in one batch count once
 *   UOWNER    a unique key is released only by its owner
 *   CMARK     settle and reclaim look at the cancel mark
 *   FENCE     settle compares the whole token
 *   NEWFIRST  promotion writes the new place first, then removes the old one (matters when the script fails in between: TEAR)
 *   PATOM     promotion finds and moves in one script (0: the sweeper lists, and moves what it listed later)
 *   TRIMOK    an idle sender is trimmed only when no copy of its commands is in the network (longer than TCP keeps a command alive)
 *   IDMEM     a chosen id stays known after the end. 1: 10 min, less than TCP keeps a command alive; 2: longer than that; 0: not at all
 *   AGE       every client command carries the Redis time of the last answer before its first send; Redis does nothing when that is
 *             older than a bound that is shorter than both memories (senders, chosen ids): OLD, which ends the call as unknown.
 *             Modelled: what a trim or a forget could let in again has grown old by then, in the network and in the client's hand.
 *   RUNIQ     revive takes the unique key again, or is refused when another living job owns it
 *   PKNOW     a chosen id stays known after a purge as after any end (0: a purge forgets it at once)
 *   CLEAN     a claim takes the id out of waiting AND delayed, cancel looks in both (matters after TEAR)
 */
#ifndef TURN
#define TURN 1
#endif
#ifndef KEPT
#define KEPT 1
#endif
#ifndef ONCE
#define ONCE 1
#endif
#ifndef SEEN
#define SEEN 1
#endif
#ifndef UOWNER
#define UOWNER 1
#endif
#ifndef CMARK
#define CMARK 1
#endif
#ifndef FENCE
#define FENCE 1
#endif
#ifndef NEWFIRST
#define NEWFIRST 1
#endif
#ifndef PATOM
#define PATOM 1
#endif
#ifndef TRIMOK
#define TRIMOK 1
#endif
#ifndef IDMEM
#define IDMEM 1
#endif
#ifndef SAME
#define SAME 1     /* 0: do not assert that a repeat gets the same outcomes (to see what else goes wrong) */
#endif
#ifndef AGE
#define AGE 1
#endif
#ifndef RUNIQ
#define RUNIQ 1
#endif
#ifndef PKNOW
#define PKNOW 1
#endif
#ifndef CLEAN
#define CLEAN 1
#endif
/* budgets of the faults */
#ifndef NET
#define NET 2      /* commands or replies lost, late or copied, in all */
#endif
#ifndef REP
#define REP 1      /* repeats per call before the client must give up (it may give up earlier) */
#endif
#ifndef CRASH
#define CRASH 0    /* a client crashes and starts again as a new sender, with its next call */
#endif
#ifndef TRIM
#define TRIM 0     /* idle senders trimmed */
#endif
#ifndef TEAR
#define TEAR 0     /* promotions that fail between their two writes */
#endif
#ifndef RECLAIM
#define RECLAIM 0
#endif
#ifndef RELEASE
#define RELEASE 0  /* hand-backs */
#endif
#ifndef MAX
#define MAX 1
#endif
#ifndef J
#define J 2
#endif
#ifndef KEYS
#define KEYS 0     /* bit j: id j has the unique key */
#endif
#ifndef CHOSEN
#define CHOSEN 0   /* bit j: the caller chose id j */
#endif
#ifndef DELAYED
#define DELAYED 0  /* bit j: due later */
#endif
#define ENQ 1
#define CANCEL 2
#define REVIVE 3
#define PURGE 4
#ifndef K0
#define K0 0
#endif
#ifndef A0
#define A0 0
#endif
#ifndef B0
#define B0 0
#endif
#ifndef K1
#define K1 0
#endif
#ifndef A1
#define A1 0
#endif
#ifndef B1
#define B1 0
#endif
#ifndef K2
#define K2 0
#endif
#ifndef A2
#define A2 0
#endif
#ifndef B2
#define B2 0
#endif
#ifndef K3
#define K3 0
#endif
#ifndef A3
#define A3 0
#endif
#ifndef B3
#define B3 0
#endif
#define KIND(c) ((c) == 0 -> K0 : ((c) == 1 -> K1 : ((c) == 2 -> K2 : K3)))
#define ITA(c)  ((c) == 0 -> A0 : ((c) == 1 -> A1 : ((c) == 2 -> A2 : A3)))
#define ITB(c)  ((c) == 0 -> B0 : ((c) == 1 -> B1 : ((c) == 2 -> B2 : B3)))
#define KEYED(j)  ((KEYS >> (j)) & 1)
#define CHOSE(j)  ((CHOSEN >> (j)) & 1)
#define LATER(j)  ((DELAYED >> (j)) & 1)
#define C 2
#define W 2
#define S 3
#define L 2
/* outcomes of an item */
#define OK 1
#define EXISTS 2
#define DUPLICATE 3
#define NOTHING 4
/* whole replies */
#define STALE 64
#define OLD 65

/* ---- Redis ---- */
bit  body[J]; bit inw[J]; bit ind[J]; byte act[J];  /* act: token of the claim, 0 = none */
byte fin[J];                                        /* 1 completed, 2 dead, 3 cancelled */
bit  mark[J]; byte tries[J];
byte fence[J];                                      /* rising; one counter per id is enough here */
byte uk = 0;                                        /* owner of the unique key, id + 1 */
byte sl[S]; byte so[S];                             /* senders: last turn, kept outcomes */

/* ---- ghosts ---- */
byte lives[J]; byte ends[J]; bit torn[J];
byte fo[4];                                         /* outcomes of the first application of a call */
bit  did[8];                                        /* item i of call c had its effect */
bit  sent[4];
bit  old[8];                                        /* its id ended after the call was first sent */

/* ---- clients ---- */
byte pc[C]; byte st[C];                             /* st: 0 idle, 1 command, 2 reply in the network, 3 unknown */
byte sn[C]; byte tn[C]; byte rp[C]; byte re[C]; bit cx[C];
byte nexts = 2;
/* late copies */
bit  lu[L]; byte ls[L]; byte lt[L]; byte lc[L]; bit lx[L];

/* ---- workers, sweeper ---- */
byte job[W]; byte rf[W];
byte pl = 0;                                        /* listed by the sweeper (only without PATOM) */

byte nnet = NET, ncrash = CRASH, ntrim = TRIM, ntear = TEAR, nrec = RECLAIM, nrel = RELEASE;
bit faults = 1;
byte r, o1, o2, a, b, k; /* scratch, 0 between the steps */

#define LIVES(j) (body[j] && !fin[j])
#define PLACES(j) (inw[j] + ind[j] + (act[j] > 0) + (fin[j] > 0))

inline check() {
  a = 0; b = 0;
  do
  :: a < J ->
       if :: PLACES(a) == 0 || (PLACES(a) == 1 && body[a]) -> torn[a] = 0 :: else fi;
       assert(!body[a] || PLACES(a) >= 1);              /* never nowhere */
       assert(torn[a] || PLACES(a) <= 1);               /* never in two places (except where a script broke) */
       assert(body[a] || torn[a] || PLACES(a) == 0);
       assert(!CMARK || !mark[a] || act[a] > 0);        /* a cancel mark belongs to an active job */
       if :: KEYED(a) && LIVES(a) -> b++ :: else fi;
       a++
  :: else -> break
  od;
  assert(b <= 1);                                       /* one living job per unique key */
  a = 0; b = 0
}

inline finish(j, how) {
  assert(body[j] && !fin[j] && ends[j] < lives[j]);     /* each life ends once */
  ends[j]++; fin[j] = how; mark[j] = 0;
  if :: KEYED(j) && (!UOWNER || uk == j+1) -> uk = 0 :: else fi;
  k = 0;
  do
  :: k < 4 ->
       if :: sent[k] && KIND(k) == ENQ && ITA(k) == j+1 -> old[2*k] = 1 :: else fi;
       if :: sent[k] && KIND(k) == ENQ && ITB(k) == j+1 -> old[2*k+1] = 1 :: else fi;
       k++
  :: else -> break
  od;
  k = 0
}

inline effect(i) { assert(!did[i]); did[i] = 1 }        /* one call, one effect */

inline make(j, i) {
  effect(i);
  assert(CHOSE(j) || lives[j] == 0);                    /* a generated id is one job, forgotten or not */
  assert(!old[i]);                                      /* a chosen id: what was sent before the end makes no second job */
  body[j] = 1; fin[j] = 0; tries[j] = 0; lives[j]++;
  if :: LATER(j) -> ind[j] = 1 :: else -> inw[j] = 1 fi;
  if :: KEYED(j) -> uk = j+1 :: else fi
}

#define TAKEN(j) (KEYED(j) && uk > 0 && uk != (j)+1 && LIVES(uk-1))

inline apply(s, t, c, x) {           /* a client's script; reply in r */
  r = 0; o1 = 0; o2 = 0;
  if
  :: x -> r = OLD
  :: !x && TURN && t < sl[s] -> r = STALE
  :: !x && TURN && t == sl[s] && KEPT -> r = so[s]
  :: !x && TURN && t == sl[s] && !KEPT ->
       a = ITA(c)-1;
       if
       :: KIND(c) == ENQ -> o1 = (body[a] -> OK : NOTHING); if :: ITB(c) > 0 -> o2 = (body[ITB(c)-1] -> OK : NOTHING) :: else fi
       :: KIND(c) == CANCEL -> o1 = (fin[a] == 3 -> OK : (mark[a] -> EXISTS : NOTHING))
       :: else -> o1 = (LIVES(a) -> OK : NOTHING)
       fi;
       r = o1 + 8*o2
  :: else ->
       a = ITA(c)-1;
       if
       :: KIND(c) == ENQ ->
            o1 = (body[a] -> EXISTS : (TAKEN(a) -> DUPLICATE : OK));
            if
            :: ITB(c) > 0 -> b = ITB(c)-1;
                 o2 = (body[b] -> EXISTS : (TAKEN(b) -> DUPLICATE : OK));
                 if :: SEEN && o1 == OK && o2 == OK && a == b -> o2 = EXISTS
                    :: SEEN && o1 == OK && o2 == OK && a != b && KEYED(a) && KEYED(b) -> o2 = DUPLICATE
                    :: else fi
            :: else
            fi;
            if :: o1 == OK -> make(a, 2*c) :: else fi;
            if :: o2 == OK -> make(b, 2*c+1) :: else fi
       :: KIND(c) == CANCEL ->
            if
            :: inw[a] || ind[a] -> effect(2*c);
                 if :: CLEAN -> inw[a] = 0; ind[a] = 0 :: !CLEAN && inw[a] -> inw[a] = 0 :: else -> ind[a] = 0 fi;
                 finish(a, 3); o1 = OK
            :: !inw[a] && !ind[a] && act[a] > 0 -> effect(2*c); mark[a] = 1; o1 = EXISTS
            :: else -> o1 = NOTHING
            fi
       :: KIND(c) == REVIVE ->
            if
            :: body[a] && fin[a] == 2 && RUNIQ && TAKEN(a) -> o1 = DUPLICATE
            :: body[a] && fin[a] == 2 && !(RUNIQ && TAKEN(a)) -> effect(2*c);
                 fin[a] = 0; inw[a] = 1; tries[a] = 0; lives[a]++; o1 = OK;
                 if :: RUNIQ && KEYED(a) -> uk = a+1 :: else fi
            :: else -> o1 = NOTHING
            fi
       :: KIND(c) == PURGE ->
            if
            :: body[a] && fin[a] == 2 -> effect(2*c); o1 = OK;
                 if :: PKNOW && CHOSE(a) -> fin[a] = 1 :: else -> body[a] = 0; fin[a] = 0 fi;   /* 1: known, and forgotten as after any end */
                 if :: KEYED(a) && (!UOWNER || uk == a+1) -> uk = 0 :: else fi
            :: else -> o1 = NOTHING
            fi
       fi;
       r = o1 + 8*o2;
       if :: TURN -> sl[s] = t; so[s] = r :: else fi;
       if :: fo[c] == 0 -> fo[c] = r :: else fi
  fi;
  a = 0; b = 0; o1 = 0; o2 = 0;
  check()
}

#define CALL(i) ((i)*2 + pc[i])
#define MORE(i) (pc[i] < 2 && KIND(CALL(i)) > 0)
inline next(i) { pc[i]++; st[i] = 0; re[i] = 0; cx[i] = 0; rp[i] = 0 }
inline latein(n, i) { lu[n] = 1; ls[n] = sn[i]; lt[n] = tn[i]; lc[n] = CALL(i); lx[n] = cx[i] }
inline lateout(n) { lu[n] = 0; ls[n] = 0; lt[n] = 0; lc[n] = 0; lx[n] = 0 }
#define ROOM (!lu[0] || !lu[1])
inline late(i) { if :: !lu[0] -> latein(0, i) :: else -> latein(1, i) fi }

#define CLIENT(i) \
  :: d_step { st[i] == 0 && MORE(i) -> printf("* client %d sends call %d\n", i, CALL(i)); tn[i]++; st[i] = 1; rp[i] = REP; cx[i] = 0; sent[CALL(i)] = 1 } \
  :: d_step { st[i] == 1 -> printf("* call %d runs\n", CALL(i)); apply(sn[i], tn[i], CALL(i), cx[i]); re[i] = r; r = 0; st[i] = 2 } \
  :: d_step { st[i] == 2 -> printf("* client %d is told %d\n", i, re[i]); \
       if :: re[i] < STALE -> assert(!TURN || !SAME || re[i] == fo[CALL(i)]); assert(KIND(CALL(i)) != ENQ || (re[i] & 7) != OK || did[2*CALL(i)]) \
          :: else fi; next(i) } \
  :: d_step { faults && nnet > 0 && st[i] == 1 -> printf("* call %d: command lost\n", CALL(i)); nnet--; st[i] = 3 } \
  :: d_step { faults && nnet > 0 && st[i] == 1 && ROOM -> printf("* call %d: command late, no answer\n", CALL(i)); nnet--; late(i); st[i] = 3 } \
  :: d_step { faults && nnet > 0 && st[i] == 1 && ROOM -> printf("* call %d: command copied\n", CALL(i)); nnet--; late(i) } \
  :: d_step { faults && nnet > 0 && st[i] == 2 -> printf("* call %d: reply lost\n", CALL(i)); nnet--; st[i] = 3; re[i] = 0 } \
  :: d_step { st[i] == 3 && rp[i] > 0 -> printf("* call %d: repeat\n", CALL(i)); rp[i]--; st[i] = 1 } \
  :: d_step { st[i] == 3 -> printf("* call %d: given up\n", CALL(i)); if :: !ONCE -> tn[i]-- :: else fi; next(i) } \
  :: d_step { faults && ncrash > 0 && (st[i] == 2 || st[i] == 3) -> printf("* client %d crashes, new sender\n", i); ncrash--; next(i); sn[i] = nexts; nexts++; tn[i] = 0 } \
  :: d_step { faults && ncrash > 0 && st[i] == 1 && ROOM -> printf("* client %d crashes, its command is late, new sender\n", i); ncrash--; late(i); next(i); sn[i] = nexts; nexts++; tn[i] = 0 }

#define LATE(n) \
  :: d_step { lu[n] -> printf("* LATE copy of call %d runs\n", lc[n]); apply(ls[n], lt[n], lc[n], lx[n]); r = 0; lateout(n) } \
  :: d_step { lu[n] -> lateout(n) }

/* in the network: a copy of a command of sender s that Redis has already seen */
#define FLIES(s) ((lu[0] && ls[0] == s) || (lu[1] && ls[1] == s) || (st[0] == 1 && sn[0] == s) || (st[1] == 1 && sn[1] == s))
inline agesender(s) {
  if :: lu[0] && ls[0] == s && lt[0] <= sl[s] -> lx[0] = 1 :: else fi;
  if :: lu[1] && ls[1] == s && lt[1] <= sl[s] -> lx[1] = 1 :: else fi;
  if :: st[0] > 0 && sn[0] == s && tn[0] <= sl[s] -> cx[0] = 1 :: else fi;
  if :: st[1] > 0 && sn[1] == s && tn[1] <= sl[s] -> cx[1] = 1 :: else fi
}
#define TRIMMED(s) \
  :: d_step { faults && ntrim > 0 && sl[s] > 0 && (AGE || !TRIMOK || !FLIES(s)) -> printf("* sender %d trimmed\n", s); ntrim--; \
       if :: AGE && TRIMOK -> agesender(s) :: else fi; sl[s] = 0; so[s] = 0 }

#define ABOUT(c,j) (KIND(c) == ENQ && ((ITA(c) == (j)+1 && old[2*(c)]) || (ITB(c) == (j)+1 && old[2*(c)+1])))
#define FLYID(j) ((lu[0] && ABOUT(lc[0],j)) || (lu[1] && ABOUT(lc[1],j)) || (st[0] == 1 && ABOUT(CALL(0),j)) || (st[1] == 1 && ABOUT(CALL(1),j)))
inline ageid(j) {
  if :: lu[0] && ABOUT(lc[0],j) -> lx[0] = 1 :: else fi;
  if :: lu[1] && ABOUT(lc[1],j) -> lx[1] = 1 :: else fi;
  if :: st[0] > 0 && ABOUT(CALL(0),j) -> cx[0] = 1 :: else fi;
  if :: st[1] > 0 && ABOUT(CALL(1),j) -> cx[1] = 1 :: else fi
}

#define JOB(j) \
  /* the body of a completed or cancelled job goes (at once, or after its retention); dead ones stay until purged */ \
  :: d_step { body[j] && (fin[j] & 1) && (!CHOSE(j) || AGE || IDMEM < 2 || !FLYID(j)) -> printf("* job %d forgotten\n", j); \
       if :: CHOSE(j) && AGE && IDMEM > 0 -> ageid(j) :: else fi; body[j] = 0; fin[j] = 0; check() } \
  :: d_step { ind[j] -> printf("* job %d promoted (sweeper or exchange)\n", j); inw[j] = 1; ind[j] = 0; check() } \
  :: d_step { faults && ntear > 0 && ind[j] -> printf("* job %d promoted, the script breaks in between\n", j); ntear--; \
       if :: NEWFIRST -> inw[j] = 1; torn[j] = 1 :: else -> ind[j] = 0 fi; check() } \
  :: d_step { !PATOM && faults && ind[j] && pl == 0 -> printf("* sweeper lists job %d\n", j); pl = j+1 } \
  :: d_step { !PATOM && pl == j+1 -> printf("* sweeper moves job %d\n", j); inw[j] = 1; ind[j] = 0; pl = 0; check() } \
  :: d_step { faults && nrec > 0 && act[j] > 0 -> printf("* job %d reclaimed\n", j); nrec--; \
       if :: mark[j] && CMARK -> act[j] = 0; finish(j, 3) \
          :: else -> tries[j]++; act[j] = 0; if :: tries[j] >= MAX -> finish(j, 2) :: else -> inw[j] = 1 fi fi; check() }

inline settled(w, out) {
  a = job[w]-1;
  if
  :: act[a] > 0 && (!FENCE || act[a] == rf[w]) ->
       assert(act[a] == rf[w]);                         /* only the current attempt settles */
       act[a] = 0;
       if
       :: mark[a] && CMARK -> finish(a, 3)
       :: else ->
            if
            :: out == 1 -> finish(a, 1)
            :: out == 2 -> tries[a]++; if :: tries[a] >= MAX -> finish(a, 2) :: else -> ind[a] = 1 fi
            :: out == 3 -> inw[a] = 1
            fi
       fi
  :: else
  fi;
  a = 0; job[w] = 0; rf[w] = 0; check()
}

#define WORKER(w) \
  CLAIM(w,0) CLAIM(w,1) \
  :: d_step { job[w] > 0 -> printf("* worker %d: job %d ok\n", w, job[w]-1); settled(w, 1) } \
  :: d_step { job[w] > 0 -> printf("* worker %d: job %d fails\n", w, job[w]-1); settled(w, 2) } \
  :: d_step { faults && nrel > 0 && job[w] > 0 -> printf("* worker %d: job %d handed back\n", w, job[w]-1); nrel--; settled(w, 3) }

#define CLAIM(w,j) \
  :: d_step { job[w] == 0 && inw[j] -> inw[j] = 0; \
       if :: CLEAN -> ind[j] = 0 :: else fi; \
       if \
       :: !body[j] -> printf("* claim drops job %d, it has no body\n", j) \
       :: else -> printf("* worker %d claims job %d\n", w, j); \
            assert(!fin[j]);                            /* ended (cancelled, dead, completed) never runs again */ \
            assert(!mark[j]); \
            fence[j]++; act[j] = fence[j]; job[w] = j+1; rf[w] = fence[j] \
       fi; check() }

active proctype enqueue() {
  d_step { sn[0] = 0; sn[1] = 1 };
  do
  CLIENT(0)
  CLIENT(1)
  LATE(0)
  LATE(1)
  TRIMMED(0) TRIMMED(1) TRIMMED(2)
  JOB(0)
  JOB(1)
#if J > 2
  JOB(2) CLAIM(0,2) CLAIM(1,2)
#endif
  WORKER(0)
  WORKER(1)
  :: d_step { faults -> faults = 0; nnet = 0; ncrash = 0; ntrim = 0; ntear = 0; nrec = 0; nrel = 0 }
  :: else ->                                            /* nothing can move */
       assert(!MORE(0) && !MORE(1));                    /* every call has come back */
       k = 0;
       do :: k < J -> assert(!LIVES(k) && ends[k] == lives[k] && !inw[k] && !ind[k] && !act[k]); k++ :: else -> break od; k = 0;
       break
  od
}
