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
#define LATE 1 /* requests under way at a time whose senders have given up */

#include "mistakes.pml"

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

#include "server.pml"
#include "steps.pml"
#include "client.pml"

/* After the clients, whose numbers are those of their processes. */
active proctype server()
{
end:
	do
	:: step { arrives(0) -> apply(0); tidy() }
	:: step { arrives(1) -> apply(1); tidy() }
	:: step { arrives(2) -> apply(2); tidy() }
	:: step { arrives(CLIENTS) -> apply(CLIENTS); clear(CLIENTS); tidy() }
	:: step { req[CLIENTS].op -> clear(CLIENTS); tidy() }
	:: step { obj.g && obj.m < METAS -> /* somebody edits it by hand */
		printf("server    edited by hand\n");
		obj.m++; watch_ends(OBJ); watch_begins(OBJ); tidy() }
	od
}
