CREATE TABLE "cost_months" (
	"month" text PRIMARY KEY NOT NULL,
	"closed_at" timestamp with time zone NOT NULL,
	"closed_by" text NOT NULL,
	"report" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "gpu_prices" (
	"gpu_type" text PRIMARY KEY NOT NULL,
	"basis" text NOT NULL,
	"micro" bigint NOT NULL,
	"changed_at" timestamp with time zone NOT NULL,
	"changed_by" text
);
--> statement-breakpoint
ALTER TABLE "gpu_prices" ADD CONSTRAINT "gpu_prices_changed_by_users_id_fk" FOREIGN KEY ("changed_by") REFERENCES "public"."users"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "lease_intervals_ended" ON "lease_intervals" USING btree ("ended_at");--> statement-breakpoint
CREATE INDEX "lease_requests_decided" ON "lease_requests" USING btree ("decided_at");
--> statement-breakpoint
-- A closed month is final: whoever is connected, it is neither changed nor removed.
CREATE FUNCTION cost_months_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'a closed month is final' USING ERRCODE = 'insufficient_privilege';
END
$$;
--> statement-breakpoint
CREATE TRIGGER cost_months_final BEFORE UPDATE OR DELETE ON cost_months
  FOR EACH ROW EXECUTE FUNCTION cost_months_refuse();
--> statement-breakpoint
CREATE TRIGGER cost_months_no_truncate BEFORE TRUNCATE ON cost_months
  FOR EACH STATEMENT EXECUTE FUNCTION cost_months_refuse();
--> statement-breakpoint
ALTER TABLE cost_months ENABLE ALWAYS TRIGGER cost_months_final;
--> statement-breakpoint
ALTER TABLE cost_months ENABLE ALWAYS TRIGGER cost_months_no_truncate;
