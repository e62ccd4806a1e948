CREATE TABLE "identity_groups" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"team_id" text,
	"role" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "identity_groups_name_team" UNIQUE NULLS NOT DISTINCT("name","team_id"),
	CONSTRAINT "identity_groups_admin_of_no_team" CHECK (("identity_groups"."role" = 'admin') = ("identity_groups"."team_id" is null))
);
--> statement-breakpoint
ALTER TABLE "memberships" ADD COLUMN "by_group" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "access_tokens" ADD COLUMN "scopes" text[] DEFAULT '{"read","workspaces","manage"}' NOT NULL;--> statement-breakpoint
ALTER TABLE "users" ADD COLUMN "admin_by_group" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "identity_groups" ADD CONSTRAINT "identity_groups_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;