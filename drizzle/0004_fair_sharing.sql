CREATE TABLE "device_intervals" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"gpu_id" text NOT NULL,
	"state" text NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "kind_windows" (
	"id" text PRIMARY KEY NOT NULL,
	"gpu_type" text NOT NULL,
	"from_minute" integer NOT NULL,
	"to_minute" integer NOT NULL,
	"kind" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "quota_requests" (
	"id" text PRIMARY KEY NOT NULL,
	"team_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"user_id" text NOT NULL,
	"guaranteed_milli" integer NOT NULL,
	"limit_milli" integer NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"ends_at" timestamp with time zone NOT NULL,
	"reason" text NOT NULL,
	"state" text NOT NULL,
	"decided_by" text,
	"decided_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "quota_windows" (
	"id" text PRIMARY KEY NOT NULL,
	"team_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"from_minute" integer NOT NULL,
	"to_minute" integer NOT NULL,
	"guaranteed_milli" integer NOT NULL,
	"limit_milli" integer NOT NULL
);
--> statement-breakpoint
CREATE TABLE "reservations" (
	"id" text PRIMARY KEY NOT NULL,
	"team_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"milli" integer NOT NULL,
	"unit_milli" integer NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"ends_at" timestamp with time zone NOT NULL,
	"note" text DEFAULT '' NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "stop_switches" (
	"id" text PRIMARY KEY NOT NULL,
	"scope" text NOT NULL,
	"subject_id" text,
	"reason" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"lifted_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "team_policies" (
	"team_id" text PRIMARY KEY NOT NULL,
	"max_lease_seconds" integer,
	"idle_seconds" integer,
	"co_tenancy" text DEFAULT 'any' NOT NULL
);
--> statement-breakpoint
CREATE TABLE "team_usage" (
	"team_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"amount" bigint NOT NULL,
	"at" timestamp with time zone NOT NULL,
	CONSTRAINT "team_usage_team_id_gpu_type_pk" PRIMARY KEY("team_id","gpu_type")
);
--> statement-breakpoint
DROP INDEX "leases_request";--> statement-breakpoint
ALTER TABLE "lease_requests" ADD COLUMN "rank" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD COLUMN "kind" text DEFAULT 'interactive' NOT NULL;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD COLUMN "max_devices" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD COLUMN "needs" jsonb;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD COLUMN "kept_gpu_ids" jsonb;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "guaranteed_only" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "ordinal" integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "notice_for" text;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "notice_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "leases" ADD COLUMN "release_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "gpu_servers" ADD COLUMN "zone" text;--> statement-breakpoint
ALTER TABLE "gpu_servers" ADD COLUMN "rtt_us" integer;--> statement-breakpoint
ALTER TABLE "gpus" ADD COLUMN "link_group" text;--> statement-breakpoint
ALTER TABLE "quotas" ADD COLUMN "person_milli" integer;--> statement-breakpoint
ALTER TABLE "quotas" ADD COLUMN "largest_milli" integer;--> statement-breakpoint
ALTER TABLE "quotas" ADD COLUMN "budget_milli_hours" bigint;--> statement-breakpoint
ALTER TABLE "device_intervals" ADD CONSTRAINT "device_intervals_gpu_id_gpus_id_fk" FOREIGN KEY ("gpu_id") REFERENCES "public"."gpus"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quota_requests" ADD CONSTRAINT "quota_requests_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quota_requests" ADD CONSTRAINT "quota_requests_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quota_requests" ADD CONSTRAINT "quota_requests_decided_by_users_id_fk" FOREIGN KEY ("decided_by") REFERENCES "public"."users"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quota_windows" ADD CONSTRAINT "quota_windows_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "reservations" ADD CONSTRAINT "reservations_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "team_policies" ADD CONSTRAINT "team_policies_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "team_usage" ADD CONSTRAINT "team_usage_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "device_intervals_gpu" ON "device_intervals" USING btree ("gpu_id","started_at");--> statement-breakpoint
CREATE INDEX "kind_windows_type" ON "kind_windows" USING btree ("gpu_type");--> statement-breakpoint
CREATE INDEX "quota_requests_type" ON "quota_requests" USING btree ("gpu_type","state","ends_at");--> statement-breakpoint
CREATE INDEX "quota_windows_type" ON "quota_windows" USING btree ("gpu_type");--> statement-breakpoint
CREATE INDEX "reservations_type" ON "reservations" USING btree ("gpu_type","ends_at");--> statement-breakpoint
CREATE UNIQUE INDEX "leases_request" ON "leases" USING btree ("request_id","ordinal");