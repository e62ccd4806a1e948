CREATE TABLE "what_ifs" (
	"id" text PRIMARY KEY NOT NULL,
	"key" text NOT NULL,
	"question" jsonb NOT NULL,
	"state" text NOT NULL,
	"progress" real DEFAULT 0 NOT NULL,
	"message" text,
	"result" jsonb,
	"alive_at" timestamp with time zone NOT NULL,
	"asked_by" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
ALTER TABLE "what_ifs" ADD CONSTRAINT "what_ifs_asked_by_users_id_fk" FOREIGN KEY ("asked_by") REFERENCES "public"."users"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "what_ifs_key" ON "what_ifs" USING btree ("key");