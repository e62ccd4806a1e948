CREATE TABLE "usage_team_hours" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"team_id" text NOT NULL,
	"state" text NOT NULL,
	"held" bigint NOT NULL,
	"used" bigint NOT NULL,
	"borrowed" bigint NOT NULL,
	"promised" bigint NOT NULL,
	"delivered" bigint NOT NULL,
	CONSTRAINT "usage_team_hours_at_gpu_type_team_id_state_pk" PRIMARY KEY("at","gpu_type","team_id","state")
);
--> statement-breakpoint
CREATE TABLE "usage_weeks" (
	"at" timestamp with time zone NOT NULL,
	"team_id" text NOT NULL,
	"user_id" text NOT NULL,
	"workspace_id" text NOT NULL,
	"held" bigint NOT NULL,
	"used" bigint NOT NULL,
	"borrowed" bigint NOT NULL,
	"promised" bigint NOT NULL,
	"delivered" bigint NOT NULL,
	CONSTRAINT "usage_weeks_at_workspace_id_user_id_team_id_pk" PRIMARY KEY("at","workspace_id","user_id","team_id")
);
--> statement-breakpoint
INSERT INTO usage_team_hours (at, gpu_type, team_id, state, held, used, borrowed, promised, delivered)
SELECT at, gpu_type, team_id, state, sum(held), sum(used), sum(borrowed), sum(promised), sum(delivered)
FROM usage_hours GROUP BY at, gpu_type, team_id, state;
--> statement-breakpoint
INSERT INTO usage_weeks (at, team_id, user_id, workspace_id, held, used, borrowed, promised, delivered)
SELECT date_bin('7 days', at, timestamptz 'epoch'), team_id, user_id, workspace_id,
  sum(held), sum(used), sum(borrowed), sum(promised), sum(delivered)
FROM usage_days WHERE at < (SELECT date_bin('7 days', rolled_to, timestamptz 'epoch') FROM usage_rollup)
GROUP BY 1, 2, 3, 4;
