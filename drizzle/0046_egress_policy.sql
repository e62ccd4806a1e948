CREATE TABLE "egress_refusals" (
	"workspace_id" text NOT NULL,
	"host" text NOT NULL,
	"port" integer NOT NULL,
	"reason" text NOT NULL,
	"count" integer NOT NULL,
	"last_at" timestamp with time zone NOT NULL,
	CONSTRAINT "egress_refusals_workspace_id_host_port_pk" PRIMARY KEY("workspace_id","host","port")
);
--> statement-breakpoint
ALTER TABLE "teams" ADD COLUMN "egress_policy" jsonb DEFAULT '{"mode":"all","allow":[]}'::jsonb NOT NULL;--> statement-breakpoint
ALTER TABLE "teams" ADD COLUMN "egress_policy_version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "egress_refusals" ADD CONSTRAINT "egress_refusals_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;