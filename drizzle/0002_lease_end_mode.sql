ALTER TABLE "lease_requests" ADD COLUMN "for_seconds" integer DEFAULT 14400 NOT NULL;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "ending_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "end_mode" text;