CREATE TABLE "usage_team_days" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"team_id" text NOT NULL,
	"state" text NOT NULL,
	"held" bigint NOT NULL,
	"used" bigint NOT NULL,
	"borrowed" bigint NOT NULL,
	"promised" bigint NOT NULL,
	"delivered" bigint NOT NULL,
	CONSTRAINT "usage_team_days_at_gpu_type_team_id_state_pk" PRIMARY KEY("at","gpu_type","team_id","state")
);
--> statement-breakpoint
INSERT INTO usage_team_days (at, gpu_type, team_id, state, held, used, borrowed, promised, delivered)
SELECT at, gpu_type, team_id, state, sum(held), sum(used), sum(borrowed), sum(promised), sum(delivered)
FROM usage_days GROUP BY at, gpu_type, team_id, state;
