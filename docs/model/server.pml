/* The server: how a request reaches the object, and what becomes of late ones. */

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
#define is_late(C, K) writes(CLIENTS, C, K)

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
