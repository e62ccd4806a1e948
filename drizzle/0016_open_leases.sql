CREATE INDEX "lease_requests_waiting" ON "lease_requests" USING btree ("workspace_id") WHERE "lease_requests"."state" = 'queued';
--> statement-breakpoint
-- What is held of a type. A plain index scan forgets the entries of rows that are over when it meets them; a bitmap scan
-- reads them again each time, and until the next vacuum they are by far the most.
CREATE FUNCTION open_leases(wanted text) RETURNS SETOF leases LANGUAGE sql STABLE
  SET enable_bitmapscan = off SET enable_seqscan = off
AS $$ SELECT * FROM leases WHERE gpu_type = wanted AND state <> 'ended' $$;
