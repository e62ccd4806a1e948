CREATE TABLE "calendar_versions" (
	"gpu_type" text NOT NULL,
	"team_id" text,
	"version" integer DEFAULT 1 NOT NULL,
	CONSTRAINT "calendar_versions_one" UNIQUE NULLS NOT DISTINCT("gpu_type","team_id")
);
--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "min_run_seconds" integer;--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "notice_seconds" integer;--> statement-breakpoint
ALTER TABLE "calendar_versions" ADD CONSTRAINT "calendar_versions_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;