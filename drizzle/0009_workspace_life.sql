CREATE TABLE "workspace_samples" (
	"workspace_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"cpu_milli" integer NOT NULL,
	"memory_bytes" bigint NOT NULL,
	CONSTRAINT "workspace_samples_workspace_id_at_pk" PRIMARY KEY("workspace_id","at")
);
--> statement-breakpoint
CREATE TABLE "workspace_variables" (
	"workspace_id" text NOT NULL,
	"name" text NOT NULL,
	"secret" boolean NOT NULL,
	"sealed" text NOT NULL,
	"updated_at" timestamp with time zone NOT NULL,
	CONSTRAINT "workspace_variables_workspace_id_name_pk" PRIMARY KEY("workspace_id","name")
);
--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "workspace_idle_seconds" integer;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "idle_seconds" integer;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "keep_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "variables_changed_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "cpu_milli" integer;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "memory_bytes" bigint;--> statement-breakpoint
ALTER TABLE "workspace_samples" ADD CONSTRAINT "workspace_samples_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspace_variables" ADD CONSTRAINT "workspace_variables_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "workspace_samples_at" ON "workspace_samples" USING btree ("at");