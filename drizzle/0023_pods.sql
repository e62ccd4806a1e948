ALTER TABLE "workspaces" ALTER COLUMN "image_version_id" DROP NOT NULL;--> statement-breakpoint
ALTER TABLE "gpu_servers" ADD COLUMN "node_name" text;--> statement-breakpoint
ALTER TABLE "gpu_servers" ADD COLUMN "cordoned_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "workspaces" ADD COLUMN "pod_uid" text;--> statement-breakpoint
CREATE UNIQUE INDEX "workspaces_pod" ON "workspaces" USING btree ("pod_uid");