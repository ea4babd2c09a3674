/* What a client does within one step. */

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

#define room (req[CLIENTS].op == 0)
#define unapplied (req[me].answer == 0)
#define my_attempt (obj.g && obj.by == me && obj.nonce != HANDED)
