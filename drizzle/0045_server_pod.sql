ALTER TABLE "gpu_servers" ADD COLUMN "pod_uid" text;--> statement-breakpoint
CREATE UNIQUE INDEX "gpu_servers_pod" ON "gpu_servers" USING btree ("pod_uid") WHERE "gpu_servers"."state" <> 'removed';