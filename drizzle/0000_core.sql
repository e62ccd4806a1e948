CREATE TABLE "audit_events" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"actor_kind" text NOT NULL,
	"actor_id" text,
	"action" text NOT NULL,
	"subject" text,
	"team_id" text,
	"detail" jsonb NOT NULL,
	"trace_id" text
);
--> statement-breakpoint
CREATE TABLE "settings" (
	"key" text PRIMARY KEY NOT NULL,
	"value" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "setup_steps" (
	"id" text PRIMARY KEY NOT NULL,
	"title" text NOT NULL,
	"state" text NOT NULL,
	"message" text,
	"started_at" timestamp with time zone,
	"finished_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "image_versions" (
	"id" text PRIMARY KEY NOT NULL,
	"image_id" text NOT NULL,
	"version" text NOT NULL,
	"state" text NOT NULL,
	"spec" jsonb NOT NULL,
	"build_state" text NOT NULL,
	"build_message" text,
	"built_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "images" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"title" text NOT NULL,
	"description" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "lease_intervals" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"lease_id" text NOT NULL,
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"gpu_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"milli" integer NOT NULL,
	"started_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "lease_requests" (
	"id" text PRIMARY KEY NOT NULL,
	"workspace_id" text NOT NULL,
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"idempotency_key" text NOT NULL,
	"gpu_type" text NOT NULL,
	"milli" integer NOT NULL,
	"memory_bytes" bigint NOT NULL,
	"guaranteed_only" integer DEFAULT 0 NOT NULL,
	"pinned_gpu_id" text,
	"owner" jsonb NOT NULL,
	"state" text NOT NULL,
	"reason" jsonb,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_polled_at" timestamp with time zone NOT NULL,
	"decided_at" timestamp with time zone,
	"wait_until" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "leases" (
	"id" text PRIMARY KEY NOT NULL,
	"request_id" text NOT NULL,
	"workspace_id" text NOT NULL,
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"gpu_id" text NOT NULL,
	"server_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"milli" integer NOT NULL,
	"memory_bytes" bigint NOT NULL,
	"borrowed" integer DEFAULT 0 NOT NULL,
	"owner" jsonb NOT NULL,
	"state" text NOT NULL,
	"epoch" integer NOT NULL,
	"granted_at" timestamp with time zone NOT NULL,
	"claimed_at" timestamp with time zone,
	"owner_seen_at" timestamp with time zone NOT NULL,
	"disconnected_at" timestamp with time zone,
	"expires_at" timestamp with time zone NOT NULL,
	"ended_at" timestamp with time zone,
	"end_reason" text,
	"end_note" text,
	"parked_bytes" bigint DEFAULT 0 NOT NULL,
	"used_memory_bytes" bigint DEFAULT 0 NOT NULL,
	"gpu_time_us" bigint DEFAULT 0 NOT NULL,
	"calls" bigint DEFAULT 0 NOT NULL,
	"usage_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "usage_samples" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"lease_id" text NOT NULL,
	"at" timestamp with time zone NOT NULL,
	"memory_bytes" bigint NOT NULL,
	"gpu_time_us" bigint NOT NULL,
	"calls" bigint NOT NULL
);
--> statement-breakpoint
CREATE TABLE "workspace_owners" (
	"workspace_id" text PRIMARY KEY NOT NULL,
	"reported_at" timestamp with time zone NOT NULL,
	"alive" jsonb NOT NULL
);
--> statement-breakpoint
CREATE TABLE "gpu_servers" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"public_key" text NOT NULL,
	"tls_fingerprint" text,
	"data_address" text,
	"version" text,
	"state" text NOT NULL,
	"epoch" integer DEFAULT 1 NOT NULL,
	"last_seen_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "gpus" (
	"id" text PRIMARY KEY NOT NULL,
	"server_id" text NOT NULL,
	"uuid" text NOT NULL,
	"name" text NOT NULL,
	"gpu_type" text NOT NULL,
	"model" text NOT NULL,
	"compute_capability" text NOT NULL,
	"kind" text DEFAULT 'shared' NOT NULL,
	"memory_bytes" bigint NOT NULL,
	"state" text NOT NULL,
	"profile" jsonb NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "memberships" (
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"role" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	CONSTRAINT "memberships_team_id_user_id_pk" PRIMARY KEY("team_id","user_id")
);
--> statement-breakpoint
CREATE TABLE "quotas" (
	"team_id" text NOT NULL,
	"gpu_type" text NOT NULL,
	"guaranteed_milli" integer NOT NULL,
	"limit_milli" integer NOT NULL,
	"weight" integer DEFAULT 1 NOT NULL,
	"priority" integer DEFAULT 0 NOT NULL,
	CONSTRAINT "quotas_team_id_gpu_type_pk" PRIMARY KEY("team_id","gpu_type")
);
--> statement-breakpoint
CREATE TABLE "teams" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "access_tokens" (
	"id" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"name" text NOT NULL,
	"secret_hash" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	"revoked_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "one_time_codes" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"secret_hash" text NOT NULL,
	"user_id" text,
	"team_id" text,
	"workspace_id" text,
	"session_id" text,
	"email" text,
	"role" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"used_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"user_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"revoked_at" timestamp with time zone,
	"user_agent" text,
	"opened_by" text
);
--> statement-breakpoint
CREATE TABLE "users" (
	"id" text PRIMARY KEY NOT NULL,
	"email" text NOT NULL,
	"name" text NOT NULL,
	"password_hash" text,
	"oidc_subject" text,
	"is_admin" boolean DEFAULT false NOT NULL,
	"is_sample" boolean DEFAULT false NOT NULL,
	"disabled_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "gateway_sessions" (
	"id" text PRIMARY KEY NOT NULL,
	"secret_hash" text NOT NULL,
	"user_id" text NOT NULL,
	"workspace_id" text NOT NULL,
	"session_id" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"revoked_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "workspace_events" (
	"seq" bigserial PRIMARY KEY NOT NULL,
	"workspace_id" text NOT NULL,
	"generation" integer NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"kind" text NOT NULL,
	"step" text NOT NULL,
	"message" text NOT NULL
);
--> statement-breakpoint
CREATE TABLE "workspaces" (
	"id" text PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"owner_id" text NOT NULL,
	"team_id" text NOT NULL,
	"image_version_id" text NOT NULL,
	"launcher" text NOT NULL,
	"default_milli" integer DEFAULT 500 NOT NULL,
	"gpu_type" text DEFAULT 'soft' NOT NULL,
	"desired" text NOT NULL,
	"observed" text NOT NULL,
	"message" text,
	"generation" integer DEFAULT 1 NOT NULL,
	"endpoint" text,
	"server_token" text,
	"credential_hash" text,
	"handle" jsonb,
	"last_activity_at" timestamp with time zone,
	"started_at" timestamp with time zone,
	"stopped_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "image_versions" ADD CONSTRAINT "image_versions_image_id_images_id_fk" FOREIGN KEY ("image_id") REFERENCES "public"."images"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lease_intervals" ADD CONSTRAINT "lease_intervals_lease_id_leases_id_fk" FOREIGN KEY ("lease_id") REFERENCES "public"."leases"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD CONSTRAINT "lease_requests_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD CONSTRAINT "lease_requests_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD CONSTRAINT "lease_requests_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "lease_requests" ADD CONSTRAINT "lease_requests_pinned_gpu_id_gpus_id_fk" FOREIGN KEY ("pinned_gpu_id") REFERENCES "public"."gpus"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "leases" ADD CONSTRAINT "leases_request_id_lease_requests_id_fk" FOREIGN KEY ("request_id") REFERENCES "public"."lease_requests"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "leases" ADD CONSTRAINT "leases_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "leases" ADD CONSTRAINT "leases_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "leases" ADD CONSTRAINT "leases_gpu_id_gpus_id_fk" FOREIGN KEY ("gpu_id") REFERENCES "public"."gpus"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "leases" ADD CONSTRAINT "leases_server_id_gpu_servers_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."gpu_servers"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "usage_samples" ADD CONSTRAINT "usage_samples_lease_id_leases_id_fk" FOREIGN KEY ("lease_id") REFERENCES "public"."leases"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspace_owners" ADD CONSTRAINT "workspace_owners_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "gpus" ADD CONSTRAINT "gpus_server_id_gpu_servers_id_fk" FOREIGN KEY ("server_id") REFERENCES "public"."gpu_servers"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "memberships" ADD CONSTRAINT "memberships_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "quotas" ADD CONSTRAINT "quotas_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "access_tokens" ADD CONSTRAINT "access_tokens_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "one_time_codes" ADD CONSTRAINT "one_time_codes_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_opened_by_users_id_fk" FOREIGN KEY ("opened_by") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "gateway_sessions" ADD CONSTRAINT "gateway_sessions_user_id_users_id_fk" FOREIGN KEY ("user_id") REFERENCES "public"."users"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "gateway_sessions" ADD CONSTRAINT "gateway_sessions_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspace_events" ADD CONSTRAINT "workspace_events_workspace_id_workspaces_id_fk" FOREIGN KEY ("workspace_id") REFERENCES "public"."workspaces"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_owner_id_users_id_fk" FOREIGN KEY ("owner_id") REFERENCES "public"."users"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_team_id_teams_id_fk" FOREIGN KEY ("team_id") REFERENCES "public"."teams"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "workspaces" ADD CONSTRAINT "workspaces_image_version_id_image_versions_id_fk" FOREIGN KEY ("image_version_id") REFERENCES "public"."image_versions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_events_at" ON "audit_events" USING btree ("at");--> statement-breakpoint
CREATE INDEX "audit_events_subject" ON "audit_events" USING btree ("subject");--> statement-breakpoint
CREATE UNIQUE INDEX "image_versions_version" ON "image_versions" USING btree ("image_id","version");--> statement-breakpoint
CREATE UNIQUE INDEX "images_name" ON "images" USING btree ("name");--> statement-breakpoint
CREATE INDEX "lease_intervals_team" ON "lease_intervals" USING btree ("team_id","started_at");--> statement-breakpoint
CREATE INDEX "lease_intervals_lease" ON "lease_intervals" USING btree ("lease_id");--> statement-breakpoint
CREATE UNIQUE INDEX "lease_requests_key" ON "lease_requests" USING btree ("workspace_id","idempotency_key");--> statement-breakpoint
CREATE INDEX "lease_requests_queue" ON "lease_requests" USING btree ("gpu_type","state","created_at");--> statement-breakpoint
CREATE UNIQUE INDEX "leases_request" ON "leases" USING btree ("request_id");--> statement-breakpoint
CREATE INDEX "leases_gpu" ON "leases" USING btree ("gpu_id","state");--> statement-breakpoint
CREATE INDEX "leases_team" ON "leases" USING btree ("team_id","state");--> statement-breakpoint
CREATE INDEX "leases_workspace" ON "leases" USING btree ("workspace_id","state");--> statement-breakpoint
CREATE INDEX "usage_samples_lease" ON "usage_samples" USING btree ("lease_id","at");--> statement-breakpoint
CREATE UNIQUE INDEX "gpu_servers_public_key" ON "gpu_servers" USING btree ("public_key");--> statement-breakpoint
CREATE UNIQUE INDEX "gpus_server_uuid" ON "gpus" USING btree ("server_id","uuid");--> statement-breakpoint
CREATE UNIQUE INDEX "teams_name" ON "teams" USING btree ("name");--> statement-breakpoint
CREATE UNIQUE INDEX "access_tokens_secret" ON "access_tokens" USING btree ("secret_hash");--> statement-breakpoint
CREATE INDEX "access_tokens_user" ON "access_tokens" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "one_time_codes_secret" ON "one_time_codes" USING btree ("secret_hash");--> statement-breakpoint
CREATE INDEX "sessions_user" ON "sessions" USING btree ("user_id");--> statement-breakpoint
CREATE UNIQUE INDEX "users_email" ON "users" USING btree ("email");--> statement-breakpoint
CREATE UNIQUE INDEX "users_oidc_subject" ON "users" USING btree ("oidc_subject");--> statement-breakpoint
CREATE UNIQUE INDEX "gateway_sessions_secret" ON "gateway_sessions" USING btree ("secret_hash");--> statement-breakpoint
CREATE INDEX "workspace_events_workspace" ON "workspace_events" USING btree ("workspace_id","seq");--> statement-breakpoint
CREATE UNIQUE INDEX "workspaces_owner_name" ON "workspaces" USING btree ("owner_id","name") WHERE "workspaces"."desired" <> 'removed';--> statement-breakpoint
CREATE UNIQUE INDEX "workspaces_credential" ON "workspaces" USING btree ("credential_hash");--> statement-breakpoint
CREATE INDEX "workspaces_team" ON "workspaces" USING btree ("team_id");