CREATE TABLE "datasets" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"description" text NOT NULL,
	"team_id" text,
	"source" jsonb NOT NULL,
	"writable" boolean DEFAULT false NOT NULL,
	"prefetch" boolean DEFAULT true NOT NULL,
	"size_bytes" bigint,
	"file_count" integer,
	"measured_at" timestamp with time zone,
	"measure_message" text,
	"registered_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"version" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "workspace_datasets" (
	"workspace_id" text NOT NULL,
	"dataset_id" text NOT NULL,
	"prefetch_state" text,
	"prefetched_bytes" bigint,
	"prefetch_total" bigint,
	"prefetch_message" text,
	"prefetch_at" timestamp with time zone,
	CONSTRAINT "workspace_datasets_workspace_id_dataset_id_pk" PRIMARY KEY("workspace_id","dataset_id")
);
--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "built_hash" text;--> statement-breakpoint
ALTER TABLE "image_versions" ADD COLUMN "packages" jsonb;--> statement-breakpoint
ALTER TABLE "datasets" ADD CONSTRAINT "datasets_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "datasets" ADD CONSTRAINT "datasets_registered_by_users_id_fk" FOREIGN KEY ("registered_by") REFERENCES "public"."users"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspace_datasets" ADD CONSTRAINT "workspace_datasets_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspace_datasets" ADD CONSTRAINT "workspace_datasets_dataset_id_datasets_id_fk" FOREIGN KEY ("dataset_id") REFERENCES "public"."datasets"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "datasets_name" ON "datasets" USING btree (coalesce("team_id", ''),"name");--> statement-breakpoint
CREATE INDEX "workspace_datasets_dataset" ON "workspace_datasets" USING btree ("dataset_id");