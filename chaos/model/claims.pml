/* Kelpie: claims, sessions, condemn, reclaim, audit, epoch, over a network that loses, repeats and delays.
 *
 * One process, guarded atomic steps (the state after each step is one state of the search). Redis runs one script at a
 * time, so each script is one step. A command that its sender gave up on stays "late" and may run at any time later,
 * or never. 2 workers with 1 slot each, S incarnations in all, 2 sweepers, 2 jobs.
 *
 * Protections, each switched off by -D<NAME>=0 to see what it is good for:
 *   TURN   every exchange carries a rising number; Redis refuses an older one; the own claims are read only behind a barrier
 *   TOMB   reclaim first marks the holder "gone" (and leaves the mark), then moves jobs; join respects the mark
 *   ONE    active is one hash, id -> (fence, session): one current attempt per job by structure; audit sees all of it
 *   ORDER  the audit reads holders before sessions
 *   REPOCH a fenced sweeper that still owns the lock raises its epoch (matters after the epoch key lost data)
 *   ROLLCALL  a node compares what it runs with what it holds after every broken connection (here: after a rollback of Redis)
 *   FENCE  settle compares the fence (0 = only "is it in the session's set", a mutation to test the checker)
 */
#ifndef TURN
#define TURN 1
#endif
#ifndef TOMB
#define TOMB 1
#endif
#ifndef ONE
#define ONE 1
#endif
#ifndef ORDER
#define ORDER 1
#endif
#ifndef REPOCH
#define REPOCH 1
#endif
#ifndef ROLLCALL
#define ROLLCALL 1
#endif
#ifndef ROLLBACK
#define ROLLBACK 0  /* Redis restarts without its last settlement */
#endif
#ifndef FENCE
#define FENCE 1
#endif
#ifndef COPY
#define COPY 1     /* may the network (or a client library) repeat a command */
#endif
#ifndef NET
#define NET 2      /* how many replies or commands get lost or late in all */
#endif
#ifndef CRASH
#define CRASH 1
#endif
#ifndef PAUSE
#define PAUSE 1
#endif
#ifndef WRONG
#define WRONG 1    /* how often a live session is condemned although it lives */
#endif
#ifndef LOCKLOSS
#define LOCKLOSS 1
#endif
#ifndef EPLOSS
#define EPLOSS 0   /* the epoch key rolls back (other slot, other shard) */
#endif
#ifndef AUDIT
#define AUDIT 1    /* how often the audit for bodies without a place may run */
#endif
#ifndef S
#define S 4
#endif
#ifndef MAX
#define MAX 2
#endif
#define N 4         /* room in the arrays; S <= N */
#define W 2
#define J 2
#define NONE 255
#define GONE 2

/* ---- Redis ---- */
bit  live[N];            /* sessions */
byte holder[N];          /* 0 absent, 1 may claim, 2 gone */
byte turn[N];            /* last turn seen */
bit  waiting[J];
byte act[N*J];           /* fence under which session s holds job j, 0 = not */
byte final[J];           /* 0 no, 1 completed, 2 dead */
byte tries[J];
byte fence = 0;
byte qepoch = 0;         /* highest epoch that the queue has seen */
byte epoch = 0;          /* the epoch key */
byte lock = 0;           /* 0 free, i+1 */

/* ---- ghosts for the assertions ---- */
byte cur[J];             /* fence of the newest claim of j */
byte starts[J];          /* handler starts */
byte us; byte uj; byte uf; /* the last completion: session, job+1, fence: what a rollback brings back */
bit  swept[N];           /* reclaim of s has begun */

/* ---- workers ---- */
bit  alive[W]; bit paused[W];
byte ses[W];
byte nextses = 2;
byte job[W];  byte jf[W]; byte out[W];    /* what runs in the slot: job+1, fence, outcome 0 running 1 ok 2 failed */
byte tn[W];
byte amb[W];             /* 1: an exchange ended with an unknown result */
bit  joined[W];
/* exchange in flight: 0 none 1 command 2 reply */
byte xst[W]; byte xt[W]; byte xj[W]; byte xf[W]; byte xo[W]; bit xk[W]; bit xb[W];
byte rc[W]; byte rj[W]; byte rf[W];        /* reply: 1 ok, 2 stale, 3 gone; claimed job+1 and fence */
/* a late exchange per worker */
bit  l[W]; byte ls[W]; byte lt[W]; byte lj[W]; byte lf[W]; byte lo[W]; bit lk[W];
/* a late join (only without TOMB, where join is a command of its own) */
bit  q[W]; byte qs[W];

/* ---- sweepers ---- */
byte ep[2]; byte tgt[2];  /* session+1 that it is emptying */
byte mask[2]; bit hasmask[2];
byte amask[2]; bit hasamask[2];

byte nnet = NET, ncrash = CRASH, npause = PAUSE, nwrong = WRONG, nlock = LOCKLOSS, nep = EPLOSS, naudit = AUDIT, nrb = ROLLBACK;
bit faults = 1;

/* scratch, always 0 between the steps */
byte a, b, c, d; bit ok;

#define HELD(s,j) act[(s)*J+(j)]

inline settle(s, j1, f, o) {        /* one attempt, judged by its fence alone */
  if
  :: j1 > 0 && HELD(s, j1-1) > 0 && (!FENCE || HELD(s, j1-1) == f) ->
       assert(final[j1-1] == 0);                       /* no second settlement */
       assert(cur[j1-1] == f);                         /* only the current attempt settles */
       HELD(s, j1-1) = 0;
       if
       :: o == 1 -> final[j1-1] = 1; us = s; uj = j1; uf = f
       :: else -> tries[j1-1]++;
            if :: tries[j1-1] >= MAX -> final[j1-1] = 2 :: else -> waiting[j1-1] = 1 fi
       fi
  :: else
  fi
}

inline claim(s) {                   /* a = job+1 claimed or 0, b = fence */
  a = 0; b = 0;
  if
  :: waiting[0] -> a = 1
  :: !waiting[0] && waiting[1] -> a = 2
  :: else
  fi;
  if
  :: a > 0 && final[a-1] -> waiting[a-1] = 0; a = 0     /* no body any more: dropped and counted */
  :: a > 0 && !final[a-1] ->
       assert(!swept[s]);                              /* a session being reclaimed claims nothing more */
       waiting[a-1] = 0; fence++; b = fence;
       if :: ONE -> c = 0; do :: c < N -> HELD(c, a-1) = 0; c++ :: else -> break od; c = 0 :: else fi;
       HELD(s, a-1) = b; cur[a-1] = b
  :: else
  fi
}

inline apply(s, t, j1, f, o, k) {   /* the exchange script; result in a, b and d (1 ok, 2 stale, 3 gone) */
  a = 0; b = 0; d = 1;
  if
  :: TURN && t <= turn[s] -> d = 2
  :: else ->
       if :: TURN -> turn[s] = t :: else fi;
       settle(s, j1, f, o);
       if
       :: TOMB && holder[s] == 0 -> holder[s] = 1       /* the first exchange is the join */
       :: else
       fi;
       if
       :: holder[s] != 1 -> d = 3
       :: holder[s] == 1 && k -> claim(s)
       :: else
       fi
  fi
}

inline start(w, j1, f) {
  job[w] = j1; jf[w] = f; out[w] = 0;
  starts[j1-1]++; assert(starts[j1-1] <= MAX)
}

inline idle(w) { job[w] = 0; jf[w] = 0; out[w] = 0 }
inline clearx(w) { xst[w] = 0; xt[w] = 0; xj[w] = 0; xf[w] = 0; xo[w] = 0; xk[w] = 0; xb[w] = 0; rc[w] = 0; rj[w] = 0; rf[w] = 0 }
inline clearl(w) { l[w] = 0; ls[w] = 0; lt[w] = 0; lj[w] = 0; lf[w] = 0; lo[w] = 0; lk[w] = 0 }
inline late(w) {                     /* the command stays somewhere in the network */
  l[w] = 1; ls[w] = ses[w]; lt[w] = xt[w]; lj[w] = xj[w]; lf[w] = xf[w]; lo[w] = xo[w]; lk[w] = xk[w]
}
inline newsession(w) {
  ses[w] = nextses; nextses++; live[ses[w]] = 1; idle(w); tn[w] = 0; amb[w] = 0; joined[w] = TOMB
}

#define READY(w)  (alive[w] && !paused[w])
#define QUIET(w)  (READY(w) && xst[w] == 0)
#define LIVE(w)   (live[ses[w]])

#define WORKER(w) \
  :: d_step { QUIET(w) && LIVE(w) && !joined[w] -> printf("* join %d\n", w); holder[ses[w]] = 1; joined[w] = 1 } /* join, as designed */ \
  :: d_step { QUIET(w) && LIVE(w) && !joined[w] && faults && nnet > 0 && !q[w] -> printf("* join, a copy is late %d\n", w); nnet--; q[w] = 1; qs[w] = ses[w]; holder[ses[w]] = 1; joined[w] = 1 } /* and once more, late */ \
  :: d_step { q[w] -> printf("* late join runs %d\n", w); holder[qs[w]] = 1; q[w] = 0; qs[w] = 0 } \
  :: d_step { q[w] -> q[w] = 0; qs[w] = 0 } \
  /* send: settle what is finished and claim for the free slot */ \
  :: d_step { QUIET(w) && LIVE(w) && joined[w] && amb[w] == 0 && (out[w] > 0 || (job[w] == 0 && (waiting[0] || waiting[1]))) -> \
       printf("* send exchange %d\n", w); tn[w]++; xst[w] = 1; xt[w] = tn[w]; xj[w] = (out[w] > 0 -> job[w] : 0); xf[w] = jf[w]; xo[w] = out[w]; xk[w] = 1 } \
  /* after an unknown result: with TURN a barrier, which settles again but claims nothing; without, read at once */ \
  :: d_step { QUIET(w) && LIVE(w) && amb[w] == 1 && TURN -> \
       printf("* send barrier %d\n", w); tn[w]++; xst[w] = 1; xt[w] = tn[w]; xj[w] = (out[w] > 0 -> job[w] : 0); xf[w] = jf[w]; xo[w] = out[w]; xk[w] = 0; xb[w] = 1 } \
  :: d_step { QUIET(w) && LIVE(w) && ((amb[w] == 1 && !TURN) || amb[w] == 2) -> printf("* read own claims %d\n", w); amb[w] = 0; \
       if :: job[w] > 0 && HELD(ses[w], job[w]-1) != jf[w] -> idle(w) :: else fi; /* settled or taken */ \
       if :: HELD(ses[w], 0) > 0 && !(job[w] == 1 && jf[w] == HELD(ses[w], 0)) -> HELD(ses[w], 0) = 0; waiting[0] = 1 :: else fi; \
       if :: HELD(ses[w], 1) > 0 && !(job[w] == 2 && jf[w] == HELD(ses[w], 1)) -> HELD(ses[w], 1) = 0; waiting[1] = 1 :: else fi } /* held and not run: given back */ \
  /* the script runs, whatever became of the sender */ \
  :: d_step { xst[w] == 1 -> printf("* exchange runs %d\n", w); apply(ses[w], xt[w], xj[w], xf[w], xo[w], xk[w]); \
       if :: alive[w] -> xst[w] = 2; rc[w] = d; rj[w] = a; rf[w] = b :: else -> clearx(w) fi; a = 0; b = 0; d = 0 } \
  :: d_step { l[w] -> printf("* LATE exchange runs %d\n", w); apply(ls[w], lt[w], lj[w], lf[w], lo[w], lk[w]); clearl(w); a = 0; b = 0; d = 0 } \
  :: d_step { l[w] -> clearl(w) } \
  /* the reply arrives */ \
  :: d_step { READY(w) && xst[w] == 2 && rc[w] == 1 -> \
       if :: xj[w] > 0 -> idle(w) :: else fi; \
       if :: rj[w] > 0 -> start(w, rj[w], rf[w]) :: else fi; \
       if :: xb[w] -> amb[w] = 2 :: else fi; clearx(w) } \
  :: d_step { READY(w) && xst[w] == 2 && rc[w] == 2 -> printf("* told stale %d\n", w); clearx(w); amb[w] = 1 } /* a copy ran first: unknown */ \
  :: d_step { READY(w) && xst[w] == 2 && rc[w] == 3 && nextses < S -> printf("* told gone %d\n", w); live[ses[w]] = 0; clearx(w); newsession(w) } \
  /* faults of the network: lost before, late, lost reply, repeated */ \
  :: d_step { faults && READY(w) && nnet > 0 && xst[w] == 1 -> printf("* command lost %d\n", w); nnet--; clearx(w); amb[w] = 1 } \
  :: d_step { faults && READY(w) && nnet > 0 && xst[w] == 1 && !l[w] -> printf("* given up, command is late %d\n", w); nnet--; late(w); clearx(w); amb[w] = 1 } \
  :: d_step { faults && READY(w) && nnet > 0 && xst[w] == 2 -> printf("* reply lost %d\n", w); nnet--; clearx(w); amb[w] = 1 } \
  :: d_step { COPY && faults && nnet > 0 && xst[w] == 1 && !l[w] -> printf("* command copied %d\n", w); nnet--; late(w) } \
  /* the handler ends */ \
  :: d_step { READY(w) && job[w] > 0 && out[w] == 0 -> printf("* handler ok %d\n", w); out[w] = 1 } \
  :: d_step { READY(w) && job[w] > 0 && out[w] == 0 -> printf("* handler fails %d\n", w); out[w] = 2 } \
  /* crash, start again, pause, told LOST by the heartbeat */ \
  :: d_step { faults && alive[w] && ncrash > 0 && nextses < S -> printf("* crash %d\n", w); ncrash--; alive[w] = 0; paused[w] = 0; idle(w); amb[w] = 0; \
       if :: xst[w] == 2 -> clearx(w) :: else fi } \
  :: d_step { !alive[w] && xst[w] == 0 && nextses < S -> printf("* restart %d\n", w); alive[w] = 1; newsession(w) } \
  :: d_step { faults && READY(w) && npause > 0 -> printf("* pause %d\n", w); npause--; paused[w] = 1 } \
  :: d_step { paused[w] -> printf("* resume %d\n", w); paused[w] = 0 } \
  :: d_step { QUIET(w) && !LIVE(w) && nextses < S -> newsession(w) } \
  :: d_step { faults && alive[w] && live[ses[w]] && nwrong > 0 && nextses < S -> printf("* condemned though alive %d\n", w); nwrong--; live[ses[w]] = 0 }

#define FENCED(i) (ep[i] < qepoch)
#define RAISE(i)  if :: REPOCH && lock == i+1 -> epoch = (epoch > qepoch -> epoch : qepoch) + 1; ep[i] = epoch \
                     :: else -> ep[i] = 0; tgt[i] = 0; mask[i] = 0; hasmask[i] = 0; amask[i] = 0; hasamask[i] = 0; \
                        if :: lock == i+1 && REPOCH -> lock = 0 :: else fi fi

inline movejob(j) {
  if :: final[j] == 0 -> tries[j]++; if :: tries[j] >= MAX -> final[j] = 2 :: else -> waiting[j] = 1 fi :: else fi
}

#define ISHOLDER(s) (holder[s] == 1 || (holder[s] == GONE && (HELD(s,0) > 0 || HELD(s,1) > 0)))
#define DEADHOLDER(s) (ISHOLDER(s) && !live[s])
#define PICK(i,s) \
  :: d_step { S > s && ep[i] > 0 && tgt[i] == 0 && ORDER && DEADHOLDER(s) -> printf("* picks holder %d -> %d\n", i, s); tgt[i] = s+1 } \
  :: d_step { S > s && ep[i] > 0 && tgt[i] == 0 && !ORDER && hasmask[i] && ISHOLDER(s) && !(mask[i] & (1<<s)) -> \
       tgt[i] = s+1; hasmask[i] = 0; mask[i] = 0 }

#define SWEEPER(i) \
  :: d_step { lock == 0 && ep[i] == 0 -> printf("* elected %d\n", i); lock = i+1; epoch++; ep[i] = epoch } \
  :: d_step { faults && nlock > 0 && lock == i+1 -> printf("* lock ends %d\n", i); nlock--; lock = 0 }      /* the lock ends; the holder does not know */ \
  :: d_step { ep[i] > 0 && lock != i+1 && tgt[i] == 0 -> ep[i] = 0; mask[i] = 0; hasmask[i] = 0; amask[i] = 0; hasamask[i] = 0 } \
  /* without ORDER the list of live sessions is read first, and holders compared with it later */ \
  :: d_step { !ORDER && ep[i] > 0 && tgt[i] == 0 && !hasmask[i] && (DEADHOLDER(0) || DEADHOLDER(1) || DEADHOLDER(2) || DEADHOLDER(3) || faults) -> \
       printf("* lists live sessions %d\n", i); hasmask[i] = 1; c = 0; do :: c < S -> if :: live[c] -> mask[i] = mask[i] | (1<<c) :: else fi; c++ :: else -> break od; c = 0 } \
  :: d_step { !ORDER && hasmask[i] -> hasmask[i] = 0; mask[i] = 0 } \
  PICK(i,0) PICK(i,1) PICK(i,2) PICK(i,3) \
  /* one batch of reclaim = one job */ \
  :: d_step { ep[i] > 0 && tgt[i] > 0 -> \
       if :: FENCED(i) -> printf("* fenced %d\n", i); assert(REPOCH || lock != i+1); RAISE(i) \
          :: else -> printf("* reclaim %d\n", i); qepoch = ep[i]; a = tgt[i]-1; assert(!live[a]); swept[a] = 1; \
             if :: TOMB -> holder[a] = GONE :: else fi; \
             if :: HELD(a,0) > 0 -> HELD(a,0) = 0; movejob(0) \
                :: HELD(a,0) == 0 && HELD(a,1) > 0 -> HELD(a,1) = 0; movejob(1) \
                :: else -> tgt[i] = 0; if :: !TOMB -> holder[a] = 0 :: else fi \
             fi; a = 0 \
       fi } \
  /* audit: a body that is nowhere goes back to waiting. Two steps as designed (list the holders, then compare), one with ONE */ \
  :: d_step { naudit > 0 && faults && ep[i] > 0 && !hasamask[i] && !ONE -> printf("* audit lists holders %d\n", i); naudit--; hasamask[i] = 1; c = 0; \
       do :: c < S -> if :: holder[c] == 1 -> amask[i] = amask[i] | (1<<c) :: else fi; c++ :: else -> break od; c = 0 } \
  :: d_step { hasamask[i] || (ONE && ep[i] > 0 && !FENCED(i) && ( \
         (!final[0] && !waiting[0] && !HELD(0,0) && !HELD(1,0) && !HELD(2,0) && !HELD(3,0)) || \
         (!final[1] && !waiting[1] && !HELD(0,1) && !HELD(1,1) && !HELD(2,1) && !HELD(3,1)))) -> \
       printf("* audit compares %d\n", i); c = 0; do :: c < J -> ok = 1; d = 0; \
            do :: d < N -> if :: (ONE || (amask[i] & (1<<d))) && HELD(d,c) > 0 -> ok = 0 :: else fi; d++ :: else -> break od; \
            if :: ok && !final[c] && !waiting[c] -> waiting[c] = 1 :: else fi; c++ \
          :: else -> break od; c = 0; d = 0; ok = 0; hasamask[i] = 0; amask[i] = 0 }

#define STRAY(s) (S > s && live[s] && !(alive[0] && ses[0] == s) && !(alive[1] && ses[1] == s))

active proctype kelpie() {
  d_step {
    waiting[0] = 1; waiting[1] = 1;
    alive[0] = 1; alive[1] = 1; ses[0] = 0; ses[1] = 1; live[0] = 1; live[1] = 1; joined[0] = TOMB; joined[1] = TOMB
  };
  do
  WORKER(0)
  WORKER(1)
  SWEEPER(0)
  SWEEPER(1)
  :: d_step { STRAY(0) -> printf("* condemn 0\n"); live[0] = 0 }     /* a session without a process, rightly */
  :: d_step { STRAY(1) -> printf("* condemn 1\n"); live[1] = 0 }
  :: d_step { STRAY(2) -> printf("* condemn 2\n"); live[2] = 0 }
  :: d_step { STRAY(3) -> printf("* condemn 3\n"); live[3] = 0 }
  :: d_step { faults && nep > 0 && epoch > 1 -> nep--; epoch = 0 }
  :: d_step { faults && nrb > 0 && uj > 0 -> printf("* Redis restarts without its last settlement\n"); nrb--;
       final[uj-1] = 0; HELD(us, uj-1) = uf; starts[uj-1]--; uj = 0; us = 0; uf = 0;
       if :: ROLLCALL -> if :: alive[0] && amb[0] == 0 -> amb[0] = 1 :: else fi; if :: alive[1] && amb[1] == 0 -> amb[1] = 1 :: else fi :: else fi }
  :: d_step { faults -> faults = 0; nnet = 0; ncrash = 0; npause = 0; nwrong = 0; nlock = 0; nep = 0; naudit = 0; nrb = 0 }
  :: else -> assert(final[0] > 0 && final[1] > 0); break   /* nothing can move: every job must have ended */
  od
}
