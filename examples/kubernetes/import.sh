#!/bin/sh
# The job. On SIGTERM it has terminationGracePeriodSeconds, less the release, to stop.
set -eu
echo "importing, with token $GCSLOCK_TOKEN"
