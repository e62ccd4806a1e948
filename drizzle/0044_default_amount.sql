ALTER TABLE "workspaces" ADD COLUMN "default_amount" text DEFAULT '0.5' NOT NULL;--> statement-breakpoint
-- 500 thousandths are typed as 0.5, 2000 as 2.
UPDATE "workspaces" SET "default_amount" = trim_scale("default_milli"::numeric / 1000)::text;--> statement-breakpoint
ALTER TABLE "workspaces" DROP COLUMN "default_milli";
