CREATE TABLE "stranded_hours" (
	"at" timestamp with time zone NOT NULL,
	"gpu_type" text NOT NULL,
	"stranded" bigint NOT NULL,
	"until" timestamp with time zone NOT NULL,
	CONSTRAINT "stranded_hours_at_gpu_type_pk" PRIMARY KEY("at","gpu_type")
);
