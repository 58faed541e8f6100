// Package webhook delivers jobs over HTTP: the handler of the kind "webhook".
//
// A job's payload is one JSON object, read strictly (an unknown, doubled or
// misspelt field is an error):
//
//	{
//	  "url":         "https://example.com/hooks",  // http or https, no user or password
//	  "method":      "POST",                       // DELETE GET HEAD OPTIONS PATCH POST PUT
//	  "headers":     {"Authorization": "Bearer x"},
//	  "body":        {"any": "JSON value"},        // sent byte for byte as it stands here
//	  "body_text":   "or any text",                // at most one of the three bodies
//	  "body_base64": "b3IgYW55IGJ5dGVz",
//	  "timeout_ms":  30000                         // of the whole exchange; 1 to 600,000
//	}
//
// A payload that cannot be read so ends as dead for being undecodable; one that
// can be read but asks for what must not be sent (a URL, header, method or
// address outside the rules) as refused. Both happen at the first attempt.
//
// "body": null sends the four bytes null; no body at all sends Content-Length: 0.
// Content-Type is application/json, text/plain; charset=utf-8 or
// application/octet-stream after the kind of body, unless the headers name one.
//
// # What a receiver can rely on
//
//   - Webhook-Id is the job's id, the same over all attempts. Deliveries are
//     at least once: keep the ids that were handled, and drop repeats.
//   - Webhook-Timestamp is the time of this attempt in Unix seconds.
//   - Webhook-Signature, when the node has secrets, follows Standard Webhooks:
//     "v1," and the base64 of HMAC-SHA256 over id.timestamp.body, made anew for
//     each attempt; one signature per secret, separated by spaces, so that a
//     secret is rotated by giving the new and the old one for a while. An id with
//     a full stop would make the signed text ambiguous: it is refused.
//   - The body has the bytes of the payload. Nothing is compacted or escaped.
//
// # What an answer means
//
//	2xx                          done; the body is not waited for
//	408, 425, 429, 500 and above another attempt, after the job's backoff or
//	                             Retry-After, whichever is longer
//	no answer                    another attempt: name not found, refused, reset,
//	                             timed out, TLS failure, not HTTP
//	3xx                          dead at once: redirects are never followed, so no
//	                             body, signature or header reaches a second host
//	410 and everything else      dead at once
//
// Retry-After is read in both forms, and at most 24 h of it. A date counts from
// the answer's own Date, so that the receiver's clock is only compared with
// itself. What cannot be read is as if absent; of several the longest counts.
// The status and the first KB of the answer are kept with the failure.
//
// # Where it connects
//
// Loopback, private, link-local (with it the metadata services of clouds),
// carrier-grade NAT and all other special-purpose addresses are refused, and
// with them the job, unless Options.Allow names the network. This is decided on
// the address that is being dialed, after the look-up of the name: neither a
// name that resolves to such an address nor one that changes its answer gets
// through. Of several addresses the refused ones are skipped. Forms that carry an
// IPv4 address inside an IPv6 one (NAT64, 6to4, Teredo) are refused as such;
// ::ffff:a.b.c.d is judged as a.b.c.d. Numbers that some resolvers take for
// addresses (0x7f000001, 127.1) are refused as spelt. Proxy settings of the
// environment are not used.
//
// # One slow receiver among many
//
// Deliveries to one host:port that run at the same time are bounded
// (Options.PerHost); those above it are put off without spending an attempt and
// without holding a slot. Each time-out halves the bound, down to one, and each
// answer raises it by one. So a receiver that swallows requests holds up the
// others for one time-out at most, then it costs one slot.
//
// # Not promised
//
// That a receiver sees a job once, or jobs in order. That a revoked certificate
// is noticed: revocation lists are not asked. HTTP/2 is not spoken.
package webhook
