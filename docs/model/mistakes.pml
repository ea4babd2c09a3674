/* Deliberate mistakes, each given by -D and each found: see `check`. */
#ifdef NO_GENERATION
#define same_life(G) (obj.g != 0)
#else
#define same_life(G) (obj.g != 0 && obj.g == (G))
#endif
#ifdef DELETE_WITHOUT_METAGENERATION
#define same_state(M) true
#else
#define same_state(M) (obj.m == (M))
#endif
#ifdef NO_EXPIRY
#define in_time(C) true
#else
#define in_time(C) (counts_from(C) >= YOUNG)
#endif
#ifdef REVIVE
#define may_renew(C) true
#else
#define may_renew(C) in_time(C)
#endif
#ifdef MISMATCH_IS_MINE
#define settled(N) false
#else
#define settled(N) (req[N].answer == MISMATCH)
#endif
#ifdef NO_NONCE
#define my_lease (obj.g != 0)
#else
#define my_lease (obj.g && obj.by == me && obj.nonce == HANDED)
#endif
#ifdef COUNT_FROM_REPLY
#define count_from_reply(K) mark_of(me, K) = YOUNG + FIT
#else
#define count_from_reply(K) skip
#endif
#ifdef COUNT_FROM_DISCOVERY
#define count_from_discovery(K) mark_of(me, K) = YOUNG + FIT
#else
#define count_from_discovery(K) skip
#endif
#ifdef EDIT_RENEWS
#define edit_renews counts_from(me) = YOUNG
#else
#define edit_renews skip
#endif
/* In the client: MISMATCH_IS_MINE, WATCH_FROM_BEFORE_READ, NO_WATCH. And no
 * mistake: EXCLUSION_ALONE asserts less, so that a trace goes on to the second
 * valid holder. */
