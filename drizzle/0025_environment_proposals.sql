CREATE TABLE "image_version_events" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"version_id" text NOT NULL,
	"run" integer NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"kind" text NOT NULL,
	"step" text NOT NULL,
	"message" text NOT NULL
);
--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "proposal" jsonb;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "team_id" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "proposed_by" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "check" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "check_message" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "check_run" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "check_workspace_id" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "definition" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "lock" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "team_ids" text[];--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "approved_by" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "approved_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "image_version_events" ADD CONSTRAINT "image_version_events_version_id_image_versions_id_fk" FOREIGN KEY ("version_id") REFERENCES "public"."image_versions"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "image_version_events_version" ON "image_version_events" USING btree ("version_id","seq");--> statement-breakpoint
ALTER TABLE "image_versions" ADD CONSTRAINT "image_versions_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "image_versions" ADD CONSTRAINT "image_versions_proposed_by_users_id_fk" FOREIGN KEY ("proposed_by") REFERENCES "public"."users"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "image_versions" ADD CONSTRAINT "image_versions_approved_by_users_id_fk" FOREIGN KEY ("approved_by") REFERENCES "public"."users"("id") ON DELETE set null ON UPDATE no action;