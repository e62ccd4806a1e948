ALTER TABLE "gpu_servers" ADD COLUMN "drained_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "gpus" ADD COLUMN "drained_at" timestamp with time zone;--> statement-breakpoint
-- A drained server was known by its devices before: all of them drained.
UPDATE "gpu_servers" SET "drained_at" = now() WHERE "state" = 'draining' OR ("state" <> 'removed'
	AND EXISTS (SELECT FROM "gpus" WHERE "server_id" = "gpu_servers"."id" AND "gpus"."state" = 'draining')
	AND NOT EXISTS (SELECT FROM "gpus" WHERE "server_id" = "gpu_servers"."id" AND "gpus"."state" = 'active'));--> statement-breakpoint
UPDATE "gpus" SET "state" = 'active' WHERE "state" = 'draining';
