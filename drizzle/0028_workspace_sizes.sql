CREATE TABLE "size_policy" (
	"only" boolean PRIMARY KEY DEFAULT true NOT NULL,
	"custom_sizes" text NOT NULL,
	"max_cpu_milli" integer NOT NULL,
	"max_memory_bytes" bigint NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	CONSTRAINT "size_policy_only" CHECK ("size_policy"."only")
);
--> statement-breakpoint
CREATE TABLE "workspace_sizes" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"description" text DEFAULT '' NOT NULL,
	"cpu_milli" integer NOT NULL,
	"memory_bytes" bigint NOT NULL,
	"position" integer DEFAULT 0 NOT NULL,
	"team_ids" text[],
	"is_default" boolean DEFAULT false NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "custom_sizes" text;--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "max_cpu_milli" integer;--> statement-breakpoint
ALTER TABLE "team_policies" ADD COLUMN "max_memory_bytes" bigint;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "size_id" text;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "size_cpu_milli" integer;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "size_memory_bytes" bigint;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "given_cpu_milli" integer;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "given_memory_bytes" bigint;--> statement-breakpoint
CREATE UNIQUE INDEX "workspace_sizes_name" ON "workspace_sizes" USING btree (lower("name"));--> statement-breakpoint
CREATE UNIQUE INDEX "workspace_sizes_default" ON "workspace_sizes" USING btree ("is_default") WHERE "workspace_sizes"."is_default";--> statement-breakpoint
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_size_id_workspace_sizes_id_fk" FOREIGN KEY ("size_id") REFERENCES "public"."workspace_sizes"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "workspaces_size" ON "workspaces" USING btree ("size_id");--> statement-breakpoint
INSERT INTO "workspace_sizes" ("id", "name", "description", "cpu_milli", "memory_bytes", "position", "is_default") VALUES
	('siz-agrasp6pnf6c5hzac6n5jjj5mi', 'Small', 'Looking around, and work that the GPU does', 1000, 2147483648, 10, false),
	('siz-agrasp6pnzyofefjqzmsswlhpi', 'Medium', 'Most notebooks', 2000, 4294967296, 20, true),
	('siz-agrasp6pnzzxpnahxoqoqf25zu', 'Large', 'Data that is prepared on the processor', 4000, 8589934592, 30, false);
