CREATE TABLE "wait_days" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"team_id" text NOT NULL,
	"waits" "bytea" NOT NULL,
	CONSTRAINT "wait_days_at_gpu_type_team_id_pk" PRIMARY KEY("at","gpu_type","team_id")
);
--> statement-breakpoint
DROP INDEX "lease_requests_granted";--> statement-breakpoint
CREATE INDEX "lease_requests_granted_to" ON "lease_requests" USING btree ("user_id","decided_at","created_at","gpu_type","team_id") WHERE "lease_requests"."state" = 'granted';--> statement-breakpoint
CREATE INDEX "lease_requests_granted_in" ON "lease_requests" USING btree ("workspace_id","decided_at","created_at","gpu_type","team_id") WHERE "lease_requests"."state" = 'granted';--> statement-breakpoint
CREATE INDEX "lease_requests_granted" ON "lease_requests" USING btree ("decided_at","created_at","gpu_type","team_id") WHERE "lease_requests"."state" = 'granted';--> statement-breakpoint
INSERT INTO wait_days (at, gpu_type, team_id, waits)
SELECT date_bin('1 day', decided_at, timestamptz 'epoch'), gpu_type, team_id, string_agg(int4send(
  greatest(0, least(2147483647, round(date_part('epoch', decided_at - created_at) * 1000)))::int), '')
FROM lease_requests
WHERE state = 'granted' AND decided_at < (SELECT date_bin('1 day', rolled_to, timestamptz 'epoch') FROM usage_rollup)
GROUP BY 1, 2, 3;
--> statement-breakpoint
-- As for the ledger: a grant is written as of now, and one that is written or changed in the past all the same turns
-- the mark back. The conditions are cheap, and the function is called for such a row alone.
CREATE FUNCTION usage_rollup_turn_back_to() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earliest timestamptz := NEW.decided_at;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    earliest := least(earliest, OLD.decided_at);
  END IF;
  PERFORM 1 FROM usage_rollup FOR UPDATE;
  UPDATE usage_rollup SET rolled_to = date_bin('1 hour', earliest, timestamptz 'epoch') WHERE rolled_to > earliest;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER lease_requests_inserted AFTER INSERT ON lease_requests FOR EACH ROW
  WHEN (NEW.state = 'granted' AND NEW.decided_at < now() - interval '5 minutes')
  EXECUTE FUNCTION usage_rollup_turn_back_to();
--> statement-breakpoint
CREATE TRIGGER lease_requests_decided AFTER UPDATE OF state, decided_at, created_at, gpu_type, team_id ON lease_requests FOR EACH ROW
  WHEN ((NEW.state = 'granted' OR OLD.state = 'granted')
    AND least(NEW.decided_at, OLD.decided_at) < now() - interval '5 minutes'
    AND (NEW.state, NEW.decided_at, NEW.created_at, NEW.gpu_type, NEW.team_id)
      IS DISTINCT FROM (OLD.state, OLD.decided_at, OLD.created_at, OLD.gpu_type, OLD.team_id))
  EXECUTE FUNCTION usage_rollup_turn_back_to();
