ALTER TABLE "gpu_servers" ADD COLUMN "drained_by_node" boolean DEFAULT false NOT NULL;--> statement-breakpoint
-- Servers that their node has closed were drained for it, as far as anybody can tell.
UPDATE "gpu_servers" SET "drained_by_node" = true WHERE "cordoned_at" IS NOT NULL AND "drained_at" IS NOT NULL;
