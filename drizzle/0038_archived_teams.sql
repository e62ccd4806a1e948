ALTER TABLE "teams" ADD COLUMN "archived_at" timestamp with time zone;--> statement-breakpoint
-- An archived team takes nothing new, whoever adds it, and whoever archives waits for what is being added: the row is
-- read in the strength of a reference to it.
CREATE FUNCTION archived_teams_refuse() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  archived timestamptz;
BEGIN
  SELECT archived_at INTO archived FROM teams WHERE id = NEW.team_id FOR KEY SHARE;
  IF archived IS NOT NULL THEN
    RAISE EXCEPTION 'the team is archived' USING ERRCODE = 'SLT01';
  END IF;
  RETURN NEW;
END
$$;
--> statement-breakpoint
CREATE TRIGGER memberships_of_archived_teams BEFORE INSERT ON memberships
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER workspaces_of_archived_teams BEFORE INSERT ON workspaces
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER datasets_of_archived_teams BEFORE INSERT ON datasets
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER image_versions_of_archived_teams BEFORE INSERT ON image_versions
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER team_policies_of_archived_teams BEFORE INSERT ON team_policies
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER quotas_of_archived_teams BEFORE INSERT ON quotas
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER quota_windows_of_archived_teams BEFORE INSERT ON quota_windows
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER quota_requests_of_archived_teams BEFORE INSERT ON quota_requests
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER reservations_of_archived_teams BEFORE INSERT ON reservations
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER identity_groups_of_archived_teams BEFORE INSERT ON identity_groups
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
--> statement-breakpoint
CREATE TRIGGER one_time_codes_of_archived_teams BEFORE INSERT ON one_time_codes
  FOR EACH ROW EXECUTE FUNCTION archived_teams_refuse();
