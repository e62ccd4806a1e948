ALTER TABLE "gpu_servers" ADD COLUMN "zone_version" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
CREATE INDEX "workspaces_started" ON "workspaces" USING btree ("image_version_id","started_at");