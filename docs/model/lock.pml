/*
 * The lock's protocol, for an exhaustive search with spin. README.md tells what
 * is covered, what is left out, and why time may be modelled as it is here.
 *
 * A client is a process; where it stands in the protocol is its label. Between
 * two steps of one, any number of steps of the others may come: that is a pause.
 * The server applies a request in one step, and the client takes the reply in
 * another one, or never does.
 */

/* Sizes. What would exceed LIVES or METAS is never delivered. */
#define CLIENTS 3
#ifndef LIVES
#define LIVES 2 /* objects created, one after the other, under the one name */
#endif
#ifndef METAS
#define METAS 2 /* the highest metageneration of each */
#endif
#ifndef LATE
#define LATE 1 /* requests under way at a time whose senders have given up */
#endif

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

/* One step, whole. spin keeps account of what is reached in it only if it is
 * atomic, which takes longer and has the same states. */
#ifdef TRACKED
#define step atomic
#else
#define step d_step
#endif

/* Requests, and what the server answers. */
mtype = { CREATE, UPDATE, DELETE, DONE, MISMATCH, ABSENT };

/*
 * The lock object. g and m are its generation and metageneration; g is 0 while
 * there is no object. by and nonce stand for the nonce: the client that made it,
 * and which of its attempts did, or HANDED for the one that its lease is about.
 * refresh is the attempt to refresh that wrote last, if its client still knows
 * it as unacknowledged. A number that nobody remembers becomes NOBODY or 0, so
 * that a number can be used again and still be a new one each time.
 */
#define HANDED 0
#define NOBODY CLIENTS
typedef Object { byte g, m, by = NOBODY, nonce, refresh }
Object obj;
byte lives;

/* A client: the version that it knows, which is its lease's or the one that it
 * watches. */
typedef Client { byte g, m }
Client c[CLIENTS];

/*
 * Requests. The first are those that their clients wait for, one each; answer is
 * then the reply, with g and m in it. The others are those that may still be
 * delivered although nobody waits any more. attempt is what a create or an
 * update writes for the nonce or for refresh.
 */
typedef Request { byte op, from, g, m, attempt, answer }
Request req[CLIENTS + LATE];

/*
 * Time. A mark is taken before a write is sent: mark 0 of a client is the one
 * that its lease counts from, 1 and 2 are those of its attempts. A watch begins
 * after a reply; watch OBJ is the server's and begins with each write. Of a mark
 * that may still be within the validity is kept which watches began after it.
 * When one of those has lasted for a ttl, the mark is OLD, because the validity
 * is shorter than the ttl. Nothing else is known about time: what is not OLD may
 * be found to be so by its holder at any moment, and a watch may last for a ttl
 * at any moment. A create's mark is FIT until its lease was found to be too far
 * used up to be handed out without a refresh.
 */
#define OLD 0
#define YOUNG 16
#define FIT 32
#define OBJ CLIENTS
#define began(W) (1 << (W))
byte mark[CLIENTS * 3];
#define counts_from(C) mark[(C) * 3]
#define mark_of(C, N) mark[(C) * 3 + (N)]

/* A lease that has not been given up by its holder. */
bool held[CLIENTS + 1];

#define valid(C) (held[C] && ((C) != NOBODY) && in_time(C))

byte i; /* of loops within one step; 0 between steps */

/* The properties. They are looked at after every step that could break them. */
inline check_holders()
{
	assert(valid(0) + valid(1) + valid(2) <= 1);
#ifndef EXCLUSION_ALONE
	/* A valid holder's object is there, and its own. */
	assert(!valid(0) || (obj.g && obj.by == 0 && obj.nonce == HANDED));
	assert(!valid(1) || (obj.g && obj.by == 1 && obj.nonce == HANDED));
	assert(!valid(2) || (obj.g && obj.by == 2 && obj.nonce == HANDED))
#endif
}

/* ---- Time ---- */

inline watch_begins(w)
{
	for (i : 0 .. CLIENTS * 3 - 1) {
		if
		:: mark[i] >= YOUNG -> mark[i] = mark[i] | began(w)
		:: else
		fi
	}
	i = 0
}

/* Watch w counts from where the server's for this version of the object does. */
inline watch_by_server(w)
{
	for (i : 0 .. CLIENTS * 3 - 1) {
		if
		:: mark[i] >= YOUNG && (mark[i] & began(OBJ)) -> mark[i] = mark[i] | began(w)
		:: else -> mark[i] = mark[i] & ~began(w)
		fi
	}
	i = 0
}

inline watch_lasted(w)
{
	for (i : 0 .. CLIENTS * 3 - 1) {
		if
		:: mark[i] & began(w) -> mark[i] = OLD
		:: else
		fi
	}
	i = 0
}

inline watch_ends(w)
{
	for (i : 0 .. CLIENTS * 3 - 1) {
		mark[i] = mark[i] & ~began(w)
	}
	i = 0
}

/* ---- The server ---- */

#define hits(N) (same_life(req[N].g) && obj.m == req[N].m)

/* What the sizes of the model leave out. */
#define deliverable(N) \
	(!(req[N].op == CREATE && !obj.g && lives == LIVES) && \
	 !(req[N].op == UPDATE && hits(N) && obj.m == METAS))

#define arrives(N) (req[N].op && !req[N].answer && deliverable(N))

/* A request reaches the object. */
inline apply(n)
{
	printf("server    %e of client %d ", req[n].op, req[n].from);
	if
	:: req[n].g -> printf("for %d.%d ", req[n].g, req[n].m)
	:: else
	fi;
	if
	:: req[n].op == CREATE && obj.g ->
		req[n].answer = MISMATCH
	:: req[n].op == CREATE && !obj.g ->
		lives++;
		obj.g = lives; obj.m = 1; obj.by = req[n].from; obj.nonce = req[n].attempt;
		watch_begins(OBJ);
		req[n].g = obj.g; req[n].m = obj.m; req[n].answer = DONE
	:: req[n].op == UPDATE && hits(n) ->
#ifndef EXCLUSION_ALONE
		assert(!valid(obj.by) || obj.by == req[n].from);
#endif
#ifdef NO_GENERATION
		if
		:: obj.g != req[n].g -> obj.by = req[n].from; obj.nonce = HANDED
		:: else
		fi;
#endif
		obj.m++; obj.refresh = req[n].attempt;
		watch_ends(OBJ); watch_begins(OBJ);
		req[n].g = obj.g; req[n].m = obj.m; req[n].answer = DONE
	:: req[n].op == UPDATE && !hits(n) ->
		req[n].answer = MISMATCH
	:: req[n].op == DELETE && same_life(req[n].g) && same_state(req[n].m) ->
		obj.g = 0; obj.m = 0; obj.by = NOBODY; obj.nonce = 0; obj.refresh = 0;
		watch_ends(OBJ);
		req[n].answer = DONE
	:: req[n].op == DELETE && same_life(req[n].g) && !same_state(req[n].m) ->
		req[n].answer = MISMATCH
	:: req[n].op == DELETE && !same_life(req[n].g) ->
		req[n].answer = ABSENT
	fi;
	printf("%e; object %d.%d of client %d; valid %d %d %d\n", req[n].answer, obj.g, obj.m, obj.by, valid(0), valid(1), valid(2));
	check_holders()
}

inline clear(n)
{
	req[n].op = 0; req[n].from = 0; req[n].g = 0; req[n].m = 0; req[n].attempt = 0; req[n].answer = 0
}

/* An attempt that may have landed or may land yet. */
#define writes(N, C, K) \
	((req[N].op == CREATE || req[N].op == UPDATE) && !settled(N) && \
	 req[N].from == (C) && req[N].attempt == (K))
#define open(C, K) \
	((obj.by == (C) && (obj.nonce == (K) || obj.refresh == (K))) || writes(C, C, K) || is_late(C, K))
#if LATE == 1
#define is_late(C, K) writes(CLIENTS, C, K)
#else
#define is_late(C, K) (writes(CLIENTS, C, K) || writes(CLIENTS + 1, C, K))
#endif

/* A late request that cannot change anything any more is as good as lost. */
#if defined(NO_GENERATION) || defined(DELETE_WITHOUT_METAGENERATION)
#define in_vain(N) false
#else
#define in_vain(N) \
	((req[N].op == CREATE && lives == LIVES) || \
	 ((req[N].op == UPDATE || req[N].op == DELETE) && (obj.g != req[N].g || obj.m > req[N].m)))
#endif

/* States that differ only in what cannot matter any more become one. */
inline tidy()
{
	for (i : CLIENTS .. CLIENTS + LATE - 1) {
		if
		:: in_vain(i) -> clear(i)
		:: else
		fi
	}
	for (i : 0 .. CLIENTS * 3 - 1) {
		if
		:: mark[i] && i % 3 && !open(i / 3, i % 3) -> mark[i] = OLD
		:: else
		fi
	}
	i = 0
}

/* ---- What a client does within one step ---- */

#define me _pid

/* For the reader of a trail. */
#define note(text) printf("client %d  ", me); printf(text); printf("\n")

/* Updates and deletes ask for the version that the client knows. */
inline send(o, attempt_)
{
	req[me].op = o; req[me].from = me; req[me].attempt = attempt_; req[me].answer = 0;
	req[me].g = c[me].g; req[me].m = c[me].m
}

inline no_request() { clear(me) }

inline take_version_from_reply()
{
	c[me].g = req[me].g; c[me].m = req[me].m;
	count_from_reply(req[me].attempt)
}

inline take_version_from_read() { c[me].g = obj.g; c[me].m = obj.m }

inline no_version() { c[me].g = 0; c[me].m = 0 }

/* Nobody remembers attempt k of this client any more. */
inline forget(k)
{
	mark_of(me, k) = OLD;
	if
	:: obj.by == me && obj.nonce == k -> obj.by = NOBODY; obj.nonce = 0
	:: else
	fi;
	if
	:: obj.by == me && obj.refresh == k -> obj.refresh = 0
	:: else
	fi;
	for (i : CLIENTS .. CLIENTS + LATE - 1) {
		if
		:: req[i].op == CREATE && req[i].from == me && req[i].attempt == k ->
			req[i].from = NOBODY; req[i].attempt = 0
		:: req[i].op == UPDATE && req[i].from == me && req[i].attempt == k ->
			req[i].attempt = 0
		:: else
		fi
	}
	i = 0
}

/* The client is done with this acquisition or lease, or has crashed. */
inline forget_all()
{
	for (i : CLIENTS .. CLIENTS + LATE - 1) {
		if
		:: req[i].op && req[i].from == me -> req[i].from = NOBODY; req[i].attempt = 0
		:: else
		fi
	}
	i = 0;
	if
	:: obj.by == me -> obj.by = NOBODY; obj.nonce = 0; obj.refresh = 0
	:: else
	fi;
	watch_ends(me);
	counts_from(me) = OLD; mark_of(me, 1) = OLD; mark_of(me, 2) = OLD;
	held[me] = false;
	no_request(); no_version()
}

/* A request with an attempt of its own. Where none is free the first is forgotten. */
inline send_attempt(o, freshness)
{
	if
	:: open(me, 1) && !open(me, 2) -> send(o, 2)
	:: else -> forget(1); send(o, 1)
	fi;
	mark_of(me, req[me].attempt) = freshness
}

inline send_create()
{
	no_request();
	watch_ends(me);
	no_version();
	send_attempt(CREATE, YOUNG + FIT)
}

/* The client has a lease by its attempt k, which is not handed out yet. */
inline new_lease(k)
{
	watch_ends(me);
	counts_from(me) = mark_of(me, k) & ~FIT;
	if
	:: obj.by == me && obj.nonce == k -> obj.nonce = HANDED
	:: else
	fi;
	forget(1); forget(2);
	no_request()
}

/* From now on the lease is the caller's. */
inline hand_over()
{
	held[me] = true;
	check_holders()
}

/* The lease is not fit to be handed out: its object goes, and may be met again. */
inline discard()
{
	forget(1); forget(2);
	mark_of(me, 1) = counts_from(me);
	counts_from(me) = OLD;
	if
	:: obj.by == me && obj.nonce == HANDED -> obj.nonce = 1
	:: else
	fi;
	send(DELETE, 0)
}

/* The refresh k is known to have landed. */
inline refreshed(k)
{
	if
	:: may_renew(me) ->
		assert(in_time(me)); /* what was lost does not become valid again */
		counts_from(me) = mark_of(me, k) & ~FIT
	:: else
	fi;
	forget(1); forget(2);
	no_request();
	check_holders()
}

/* The request may be delivered later; the client does not know. */
inline leave_under_way()
{
	for (i : CLIENTS .. CLIENTS + LATE - 1) {
		if
		:: req[i].op == 0 ->
			req[i].op = req[me].op; req[i].from = req[me].from;
			req[i].g = req[me].g; req[i].m = req[me].m;
			req[i].attempt = req[me].attempt;
			break
		:: else
		fi
	}
	i = 0;
	no_request()
}

#if LATE == 1
#define room (req[CLIENTS].op == 0)
#else
#define room (req[CLIENTS].op == 0 || req[CLIENTS + 1].op == 0)
#endif
#define unapplied (req[me].answer == 0)
#define my_attempt (obj.g && obj.by == me && obj.nonce != HANDED)

active [CLIENTS] proctype client()
{
end_idle:
	if
	:: step { true ->
			note("wants the lock, sends a create");
			send_create() }
	fi;

creating:
	if
	:: step { req[me].answer == DONE && (mark_of(me, req[me].attempt) & FIT) ->
			note("create done, holds the lock");
			take_version_from_reply();
			new_lease(req[me].attempt); hand_over() } -> goto holding
	:: step { req[me].answer == DONE && mark_of(me, req[me].attempt) >= YOUNG ->
			note("create done, late: sends a refresh");
			take_version_from_reply();
			new_lease(req[me].attempt);
			send_attempt(UPDATE, YOUNG) } -> goto settling
	:: step { req[me].answer == DONE ->
			note("create done, too late: deletes its object");
			take_version_from_reply();
			new_lease(req[me].attempt); discard() } -> goto discarding
#ifdef MISMATCH_IS_MINE
	:: step { req[me].answer == MISMATCH && obj.g && (mark_of(me, req[me].attempt) & FIT) ->
			note("create mismatched, holds the lock");
			take_version_from_read();
			new_lease(req[me].attempt); hand_over() } -> goto holding
#endif
	:: step { req[me].answer == MISMATCH ->
			note("create mismatched");
			no_request(); tidy() } -> goto looking
	:: step { true ->
			note("create unknown, will not be delivered, or its reply is lost");
			no_request(); tidy() } -> goto looking
	:: step { unapplied && room ->
			note("create unknown, still under way");
			leave_under_way(); tidy() } -> goto looking
	fi;

looking: /* what a read shows at that moment, or the end of a watch */
	if
	:: step { !obj.g ->
			note("reads: no object, sends a create");
			send_create() } -> goto creating
	:: step { my_attempt && (mark_of(me, obj.nonce) & FIT) ->
			note("reads: its own object, holds the lock");
			count_from_discovery(obj.nonce);
			take_version_from_read();
			new_lease(obj.nonce); hand_over() } -> goto holding
	:: step { my_attempt && mark_of(me, obj.nonce) >= YOUNG ->
			note("reads: its own object, late: sends a refresh");
			take_version_from_read();
			new_lease(obj.nonce);
			send_attempt(UPDATE, YOUNG) } -> goto settling
	:: step { my_attempt ->
			note("reads: its own object, too late: deletes it");
			take_version_from_read();
			new_lease(obj.nonce); discard() } -> goto discarding
#ifdef WATCH_FROM_BEFORE_READ
	:: step { true ->
			note("sends a read");
			watch_ends(me); watch_begins(me); no_version() } -> goto reading
#endif
	:: step { obj.g && !my_attempt && !(c[me].g == obj.g && c[me].m == obj.m) ->
			note("reads: an object, watches it");
			watch_ends(me); watch_begins(me);
			take_version_from_read() } -> goto looking
	:: step { obj.g && !my_attempt ->
			note("reads: an object, counts from its update by the server");
			watch_by_server(me);
			take_version_from_read() } -> goto looking
	:: step { c[me].g ->
			note("the time to live of what it watches is over: deletes it"); 
#ifndef NO_WATCH
			watch_lasted(me);
#endif
			send(DELETE, 0) } -> goto taking
	:: step { true ->
			note("gives up waiting, or crashes");
			forget_all() } -> goto end_idle
	fi;

#ifdef WATCH_FROM_BEFORE_READ
reading:
	if
	:: step { obj.g ->
			note("reads: an object, has watched it since it sent the read");
			take_version_from_read() } -> goto looking
	:: step { !obj.g -> watch_ends(me) } -> goto looking
	fi;
#endif

taking:
	if
	:: step { req[me].answer == DONE ->
			note("delete done, sends a create");
			send_create() } -> goto creating
	:: step { req[me].answer == ABSENT ->
			note("delete found nothing, sends a create");
			send_create() } -> goto creating
	:: step { req[me].answer == MISMATCH ->
			note("delete mismatched");
			no_request() } -> goto looking
	:: step { true ->
			note("delete unknown, will not be delivered, or its reply is lost");
			no_request() } -> goto looking
	:: step { unapplied && room ->
			note("delete unknown, still under way");
			leave_under_way(); tidy() } -> goto looking
	fi;

settling: /* a lease that is refreshed before it is handed out */
	if
	:: step { req[me].answer == DONE && in_time(me) ->
			note("refresh done, holds the lock");
			take_version_from_reply();
			refreshed(req[me].attempt); hand_over() } -> goto holding
	:: step { req[me].answer == DONE ->
			note("refresh done, too late: deletes its object");
			take_version_from_reply();
			discard() } -> goto discarding
	:: step { req[me].answer == MISMATCH && my_lease ->
			note("refresh mismatched, reads: edited, deletes its object");
			take_version_from_read();
			discard() } -> goto discarding
	:: step { true ->
			note("refresh failed, will not be delivered, or its reply is lost: deletes its object");
			discard() } -> goto discarding
	:: step { unapplied && room ->
			note("refresh unknown, still under way: deletes its object");
			leave_under_way(); discard(); tidy() } -> goto discarding
	fi;

discarding:
	if
	:: step { req[me].answer == DONE ->
			note("delete done, sends a create");
			send_create() } -> goto creating
	:: step { true ->
			note("delete unknown or mismatched");
			no_request(); no_version() } -> goto looking
	:: step { unapplied && room ->
			note("delete unknown, still under way");
			leave_under_way(); no_version(); tidy() } -> goto looking
	fi;

holding:
	if
	:: step { in_time(me) ->
			note("sends a refresh");
			send_attempt(UPDATE, YOUNG) } -> goto refreshing
	:: step { held[me] ->
			note("releases, or its time is up: sends a delete");
			held[me] = false; counts_from(me) = OLD; send(DELETE, 0) } -> goto releasing
	:: step { true ->
			note("crashes");
			forget_all() } -> goto end_idle
	fi;

refreshing:
	if
	:: step { req[me].answer == DONE ->
			note("refresh done");
			take_version_from_reply(); refreshed(req[me].attempt) } -> goto holding
	:: step { req[me].answer == MISMATCH && my_lease && obj.refresh ->
			note("refresh mismatched, reads: an earlier refresh landed");
			count_from_discovery(obj.refresh);
			take_version_from_read();
			refreshed(obj.refresh) } -> goto holding
	:: step { req[me].answer == MISMATCH && my_lease && !obj.refresh ->
			note("refresh mismatched, reads: edited");
			take_version_from_read(); edit_renews;
			forget(1); forget(2); no_request() } -> goto holding
	:: step { req[me].answer == MISMATCH && !my_lease ->
			note("refresh mismatched, reads: not its own, lost");
			forget_all() } -> goto end_idle
	:: step { true ->
			note("refresh unknown, will not be delivered, or its reply is lost");
			no_request(); tidy() } -> goto holding
	:: step { unapplied && room ->
			note("refresh unknown, still under way");
			leave_under_way(); tidy() } -> goto holding
	fi;

releasing:
	if
	:: step { req[me].answer == DONE || req[me].answer == ABSENT ->
			note("delete done");
			forget_all() } -> goto end_idle
	:: step { req[me].answer == MISMATCH && my_lease ->
			note("delete mismatched, reads: its own object, deletes that");
			no_request();
			take_version_from_read(); send(DELETE, 0) } -> goto releasing
	:: step { req[me].answer == MISMATCH && !my_lease ->
			note("delete mismatched, reads: not its own");
			forget_all() } -> goto end_idle
	:: step { true ->
			note("delete unknown, will not be delivered, or its reply is lost; sends it again");
			no_request(); send(DELETE, 0) } -> goto releasing
	:: step { unapplied && room ->
			note("delete unknown, still under way; sends it again");
			leave_under_way(); send(DELETE, 0); tidy() } -> goto releasing
	:: step { true ->
			note("stops trying, or crashes");
			forget_all() } -> goto end_idle
	fi
}

active proctype server()
{
end:
	do
	:: step { arrives(0) -> apply(0); tidy() }
	:: step { arrives(1) -> apply(1); tidy() }
	:: step { arrives(2) -> apply(2); tidy() }
	:: step { arrives(CLIENTS) -> apply(CLIENTS); clear(CLIENTS); tidy() }
	:: step { req[CLIENTS].op -> clear(CLIENTS); tidy() }
#if LATE == 2
	:: step { arrives(CLIENTS + 1) -> apply(CLIENTS + 1); clear(CLIENTS + 1); tidy() }
	:: step { req[CLIENTS + 1].op -> clear(CLIENTS + 1); tidy() }
#endif
	:: step { obj.g && obj.m < METAS -> /* somebody edits it by hand */
		printf("server    edited by hand\n");
		obj.m++; watch_ends(OBJ); watch_begins(OBJ); tidy() }
	od
}
