DROP INDEX "lease_requests_decided";--> statement-breakpoint
ALTER TABLE "gpu_prices" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "quotas" ADD COLUMN "version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX "lease_requests_granted" ON "lease_requests" USING btree ("decided_at","created_at","gpu_type","team_id","user_id","workspace_id") WHERE "lease_requests"."state" = 'granted';