ALTER TABLE "leases" ADD COLUMN "delivered_us" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "promised_us" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_samples" ADD COLUMN "delivered_us" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_samples" ADD COLUMN "promised_us" bigint DEFAULT 0 NOT NULL;