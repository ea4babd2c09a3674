#!/bin/sh
# Makes a bucket for locks, as gcslock check wants it, and lets MEMBER lock in it.
#
#   PROJECT=my-project BUCKET=my-locks MEMBER=serviceAccount:… LOCATION=europe-west1 ./bucket.sh
#
# Locks are small, short-lived objects: the bucket does without soft delete, versions
# and lifecycle rules, and nobody needs to read it in public. Federated identities
# (principal://…, principalSet://…) need uniform bucket-level access.
set -eu
: "${PROJECT:?}" "${BUCKET:?}" "${MEMBER:?}" "${LOCATION:?}"

gcloud storage buckets create "gs://$BUCKET" --project="$PROJECT" --location="$LOCATION" \
	--default-storage-class=STANDARD --soft-delete-duration=0 \
	--uniform-bucket-level-access --public-access-prevention

# objectUser: create, get, update and delete the lock object, and list locks.
# legacyBucketReader: gcslock check reads the bucket's settings; no lock needs it.
for role in roles/storage.objectUser roles/storage.legacyBucketReader; do
	gcloud storage buckets add-iam-policy-binding "gs://$BUCKET" --member="$MEMBER" --role="$role"
done
