CREATE TABLE "lease_work" (
	"lease_id" text NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"gpu_time_us" bigint NOT NULL,
	"delivered_us" bigint NOT NULL,
	"promised_us" bigint NOT NULL,
	CONSTRAINT "lease_work_lease_id_hour_pk" PRIMARY KEY("lease_id","hour")
);
--> statement-breakpoint
CREATE TABLE "pool_hours" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"state" text NOT NULL,
	"wall" bigint NOT NULL,
	CONSTRAINT "pool_hours_at_gpu_type_state_pk" PRIMARY KEY("at","gpu_type","state")
);
--> statement-breakpoint
CREATE TABLE "usage_days" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"workspace_id" text NOT NULL,
	"state" text NOT NULL,
	"held" bigint NOT NULL,
	"used" bigint NOT NULL,
	"borrowed" bigint NOT NULL,
	"promised" bigint NOT NULL,
	"delivered" bigint NOT NULL,
	CONSTRAINT "usage_days_at_gpu_type_workspace_id_user_id_team_id_state_pk" PRIMARY KEY("at","gpu_type","workspace_id","user_id","team_id","state")
);
--> statement-breakpoint
CREATE TABLE "usage_hours" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"workspace_id" text NOT NULL,
	"state" text NOT NULL,
	"held" bigint NOT NULL,
	"used" bigint NOT NULL,
	"borrowed" bigint NOT NULL,
	"promised" bigint NOT NULL,
	"delivered" bigint NOT NULL,
	CONSTRAINT "usage_hours_at_gpu_type_workspace_id_user_id_team_id_state_pk" PRIMARY KEY("at","gpu_type","workspace_id","user_id","team_id","state")
);
--> statement-breakpoint
CREATE TABLE "usage_rollup" (
	"id" smallint PRIMARY KEY DEFAULT 1 NOT NULL,
	"rolled_to" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "lease_work" ADD CONSTRAINT "lease_work_lease_id_leases_id_fk" FOREIGN KEY ("lease_id") REFERENCES "public"."leases"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "usage_samples_at" ON "usage_samples" USING brin ("at");--> statement-breakpoint
INSERT INTO lease_work (lease_id, hour, gpu_time_us, delivered_us, promised_us)
SELECT lease_id, date_bin('1 hour', at, timestamptz 'epoch'), sum(gpu_time_us), sum(delivered_us), sum(promised_us)
FROM usage_samples GROUP BY 1, 2;
--> statement-breakpoint
INSERT INTO usage_rollup (rolled_to) SELECT date_bin('1 hour', least(
  (SELECT min(started_at) FROM lease_intervals), (SELECT min(started_at) FROM device_intervals), now()), timestamptz 'epoch');
--> statement-breakpoint
-- The ledger is only ever written as of now, and what is rolled up ended minutes ago. Whatever writes into the past all
-- the same turns the mark back, so that the accounts are made again from there. The lock waits for a round under way.
CREATE FUNCTION usage_rollup_turn_back() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  earliest timestamptz;
BEGIN
  IF TG_OP = 'UPDATE' THEN
    SELECT min(least(o.ended_at, n.ended_at)) INTO earliest
    FROM old_rows o JOIN new_rows n USING (seq) WHERE o.ended_at IS DISTINCT FROM n.ended_at;
    SELECT least(earliest, min(least(o.started_at, n.started_at))) INTO earliest
    FROM old_rows o JOIN new_rows n USING (seq) WHERE o.started_at <> n.started_at;
  ELSE
    SELECT min(started_at) INTO earliest FROM new_rows;
  END IF;
  IF earliest < now() - interval '5 minutes' THEN
    PERFORM 1 FROM usage_rollup FOR UPDATE;
    UPDATE usage_rollup SET rolled_to = date_bin('1 hour', earliest, timestamptz 'epoch') WHERE rolled_to > earliest;
  END IF;
  RETURN NULL;
END
$$;
--> statement-breakpoint
CREATE TRIGGER lease_intervals_inserted AFTER INSERT ON lease_intervals REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION usage_rollup_turn_back();
--> statement-breakpoint
CREATE TRIGGER lease_intervals_updated AFTER UPDATE ON lease_intervals
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION usage_rollup_turn_back();
--> statement-breakpoint
CREATE TRIGGER device_intervals_inserted AFTER INSERT ON device_intervals REFERENCING NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION usage_rollup_turn_back();
--> statement-breakpoint
CREATE TRIGGER device_intervals_updated AFTER UPDATE ON device_intervals
  REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows
  FOR EACH STATEMENT EXECUTE FUNCTION usage_rollup_turn_back();
