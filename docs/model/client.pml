/* A client: where it stands in the protocol is its label. */

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
