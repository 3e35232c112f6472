// The schema of the catalog: see migrations.h.
#include "store/catalog.h"

namespace atl::store {
namespace {

// STRICT tables and CHECKs, so that a wrong value is refused when it is written and not found
// later.
constexpr Sql kMigrations[] = {
    R"sql(
CREATE TABLE tenants (
  tenant_id INTEGER PRIMARY KEY AUTOINCREMENT CHECK (tenant_id > 0),
  name TEXT NOT NULL UNIQUE CHECK (name <> ''),
  created_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO tenants (tenant_id, name, created_at_ms) VALUES (1, 'local', 1000 * unixepoch());

CREATE TABLE keys (
  tenant_id INTEGER NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
  key_id TEXT NOT NULL CHECK (key_id <> ''),
  name TEXT NOT NULL,
  hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),
  created_at_ms INTEGER NOT NULL,
  revoked_at_ms INTEGER,
  PRIMARY KEY (tenant_id, key_id)
) STRICT;

CREATE TABLE sandboxes (
  tenant_id INTEGER NOT NULL REFERENCES tenants (tenant_id),
  sandbox_id TEXT NOT NULL UNIQUE CHECK (length(sandbox_id) = 20),
  name TEXT,
  state TEXT NOT NULL CHECK (state IN ('creating', 'running', 'deleting', 'failed')),
  template_name TEXT NOT NULL,
  image BLOB NOT NULL CHECK (length(image) = 32),
  cpu_millis INTEGER NOT NULL CHECK (cpu_millis BETWEEN 0 AND 4294967295),
  memory_bytes INTEGER NOT NULL CHECK (memory_bytes >= 0),
  pids INTEGER NOT NULL CHECK (pids BETWEEN 0 AND 4294967295),
  disk_bytes INTEGER NOT NULL CHECK (disk_bytes >= 0),
  output_bytes INTEGER NOT NULL CHECK (output_bytes >= 0),
  ttl_ms INTEGER NOT NULL CHECK (ttl_ms >= 0),
  nonce BLOB NOT NULL CHECK (length(nonce) = 16),
  metadata TEXT NOT NULL,
  environment TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  failure TEXT NOT NULL,
  generation INTEGER NOT NULL CHECK (generation BETWEEN 0 AND 4294967295),
  next_exec INTEGER NOT NULL CHECK (next_exec BETWEEN 1 AND 4294967295),
  PRIMARY KEY (tenant_id, sandbox_id)
) STRICT;
CREATE INDEX sandboxes_by_age ON sandboxes (tenant_id, created_at_ms, sandbox_id);

-- The reference includes the tenant: an exec cannot belong to another tenant than its sandbox.
CREATE TABLE execs (
  tenant_id INTEGER NOT NULL,
  sandbox_id TEXT NOT NULL,
  exec INTEGER NOT NULL CHECK (exec BETWEEN 1 AND 1000000000),
  state TEXT NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'ended')),
  request TEXT NOT NULL,
  created_at_ms INTEGER NOT NULL,
  pid INTEGER NOT NULL DEFAULT 0 CHECK (pid BETWEEN 0 AND 4294967295),
  verdict TEXT NOT NULL DEFAULT '',
  exit_code INTEGER,
  signal INTEGER,
  stdout_bytes INTEGER NOT NULL DEFAULT 0,
  stderr_bytes INTEGER NOT NULL DEFAULT 0,
  stdout_cut INTEGER NOT NULL DEFAULT 0,
  stderr_cut INTEGER NOT NULL DEFAULT 0,
  start_us INTEGER NOT NULL DEFAULT 0,
  wall_us INTEGER NOT NULL DEFAULT 0,
  drain_us INTEGER NOT NULL DEFAULT 0,
  user_us INTEGER NOT NULL DEFAULT 0,
  system_us INTEGER NOT NULL DEFAULT 0,
  peak_memory_bytes INTEGER NOT NULL DEFAULT 0,
  failure TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant_id, sandbox_id, exec),
  FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, sandbox_id)
    ON DELETE CASCADE,
  CHECK ((state = 'ended') = (verdict <> ''))
) STRICT;
CREATE INDEX execs_running ON execs (sandbox_id, exec) WHERE state = 'running';
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN open_files INTEGER NOT NULL DEFAULT 1024
  CHECK (open_files BETWEEN 1 AND 4294967295);
ALTER TABLE sandboxes ADD COLUMN disk_bytes_per_second INTEGER NOT NULL DEFAULT 0
  CHECK (disk_bytes_per_second >= 0);
ALTER TABLE sandboxes ADD COLUMN on_oom TEXT NOT NULL DEFAULT 'exec'
  CHECK (on_oom IN ('exec', 'sandbox'));
ALTER TABLE sandboxes ADD COLUMN cpu_time_ms INTEGER NOT NULL DEFAULT 0
  CHECK (cpu_time_ms BETWEEN 0 AND 4294967295);
ALTER TABLE sandboxes ADD COLUMN required_extras INTEGER NOT NULL DEFAULT 0
  CHECK (required_extras BETWEEN 0 AND 4294967295);
ALTER TABLE sandboxes ADD COLUMN idle_ttl_ms INTEGER NOT NULL DEFAULT 0 CHECK (idle_ttl_ms >= 0);

ALTER TABLE execs ADD COLUMN limits_hit INTEGER NOT NULL DEFAULT 0
  CHECK (limits_hit BETWEEN 0 AND 65535);
ALTER TABLE execs ADD COLUMN read_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execs ADD COLUMN written_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execs ADD COLUMN peak_memory_scope TEXT NOT NULL DEFAULT 'exec'
  CHECK (peak_memory_scope IN ('exec', 'sandbox'));
)sql",
    // A name is free again as soon as its sandbox is being deleted. No row had one before.
    R"sql(
UPDATE sandboxes SET name = NULL;
CREATE UNIQUE INDEX sandboxes_by_name ON sandboxes (tenant_id, name)
  WHERE name IS NOT NULL AND state <> 'deleting';
)sql",
    // The totals are kept by triggers: counting a tenant's rows at each request would cost more
    // than the request.
    R"sql(
CREATE TABLE idempotency_keys (
  tenant_id INTEGER NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
  idempotency_key TEXT NOT NULL CHECK (length(idempotency_key) BETWEEN 1 AND 255),
  request BLOB NOT NULL CHECK (length(request) = 32),
  created_at_ms INTEGER NOT NULL,
  sandbox_id TEXT CHECK (length(sandbox_id) = 20),
  exec INTEGER CHECK (exec BETWEEN 1 AND 1000000000),
  status INTEGER CHECK (status BETWEEN 100 AND 599),
  location TEXT NOT NULL DEFAULT '',
  body TEXT,
  PRIMARY KEY (tenant_id, idempotency_key),
  CHECK ((status IS NULL) = (body IS NULL)),
  CHECK (exec IS NULL OR sandbox_id IS NOT NULL)
) STRICT;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (created_at_ms);

CREATE TABLE idempotency_totals (
  tenant_id INTEGER PRIMARY KEY REFERENCES tenants (tenant_id) ON DELETE CASCADE,
  keys INTEGER NOT NULL CHECK (keys >= 0),
  bytes INTEGER NOT NULL CHECK (bytes >= 0)
) STRICT;
CREATE TRIGGER idempotency_key_taken AFTER INSERT ON idempotency_keys BEGIN
  INSERT INTO idempotency_totals VALUES (new.tenant_id, 1, 0)
    ON CONFLICT (tenant_id) DO UPDATE SET keys = keys + 1;
END;
CREATE TRIGGER idempotency_key_answered AFTER UPDATE OF body ON idempotency_keys BEGIN
  UPDATE idempotency_totals SET bytes = bytes + ifnull(length(CAST(new.body AS BLOB)), 0)
      - ifnull(length(CAST(old.body AS BLOB)), 0) WHERE tenant_id = new.tenant_id;
END;
CREATE TRIGGER idempotency_key_forgotten AFTER DELETE ON idempotency_keys BEGIN
  UPDATE idempotency_totals SET keys = keys - 1,
      bytes = bytes - ifnull(length(CAST(old.body AS BLOB)), 0) WHERE tenant_id = old.tenant_id;
END;
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN ttl_from_ms INTEGER NOT NULL DEFAULT 0;
UPDATE sandboxes SET ttl_from_ms = created_at_ms;
ALTER TABLE sandboxes ADD COLUMN limits_unsettled INTEGER NOT NULL DEFAULT 0
  CHECK (limits_unsettled IN (0, 1));
)sql",
    // Kept apart from the rows, which go with their sandbox. A total stops at its greatest value:
    // the figures are an agent's, and one that lies must not keep a verdict from being stored.
    R"sql(
CREATE TABLE usage_totals (
  tenant_id INTEGER PRIMARY KEY REFERENCES tenants (tenant_id) ON DELETE CASCADE,
  since_ms INTEGER NOT NULL,
  sandboxes INTEGER NOT NULL,
  execs INTEGER NOT NULL,
  cpu_us INTEGER NOT NULL,
  wall_us INTEGER NOT NULL,
  output_bytes INTEGER NOT NULL,
  read_bytes INTEGER NOT NULL,
  written_bytes INTEGER NOT NULL
) STRICT;
CREATE TRIGGER usage_of_sandbox AFTER UPDATE OF state ON sandboxes
  WHEN old.state = 'creating' AND new.state = 'running' BEGIN
  INSERT INTO usage_totals VALUES (new.tenant_id, new.created_at_ms, 0, 0, 0, 0, 0, 0, 0)
    ON CONFLICT (tenant_id) DO NOTHING;
  UPDATE usage_totals SET sandboxes = sandboxes + 1 WHERE tenant_id = new.tenant_id;
END;
CREATE TRIGGER usage_of_exec AFTER UPDATE OF state ON execs
  WHEN old.state = 'running' AND new.state = 'ended' BEGIN
  INSERT INTO usage_totals VALUES (new.tenant_id, new.created_at_ms, 0, 0, 0, 0, 0, 0, 0)
    ON CONFLICT (tenant_id) DO NOTHING;
  UPDATE usage_totals SET execs = execs + 1,
      cpu_us = min(9000000000000000000, cpu_us + min(new.user_us, 100000000000000000)
          + min(new.system_us, 100000000000000000)),
      wall_us = min(9000000000000000000, wall_us + min(new.wall_us, 100000000000000000)),
      output_bytes = min(9000000000000000000, output_bytes
          + min(new.stdout_bytes, 100000000000000000) + min(new.stderr_bytes, 100000000000000000)),
      read_bytes = min(9000000000000000000, read_bytes + min(new.read_bytes, 100000000000000000)),
      written_bytes = min(9000000000000000000,
          written_bytes + min(new.written_bytes, 100000000000000000))
    WHERE tenant_id = new.tenant_id;
END;
)sql",
    R"sql(
CREATE TABLE templates (
  tenant_id INTEGER NOT NULL REFERENCES tenants (tenant_id) ON DELETE CASCADE,
  name TEXT NOT NULL CHECK (name <> ''),
  image BLOB NOT NULL CHECK (length(image) = 32),
  inputs BLOB NOT NULL CHECK (length(inputs) = 32),
  pack BLOB NOT NULL CHECK (length(pack) = 32),
  manifest TEXT NOT NULL,
  image_bytes INTEGER NOT NULL CHECK (image_bytes >= 0),
  created_at_ms INTEGER NOT NULL,
  current INTEGER NOT NULL CHECK (current IN (0, 1)),
  PRIMARY KEY (tenant_id, name, image)
) STRICT;
CREATE UNIQUE INDEX templates_current ON templates (tenant_id, name) WHERE current = 1;
)sql",
    R"sql(
CREATE TABLE contexts (
  tenant_id INTEGER NOT NULL,
  sandbox_id TEXT NOT NULL,
  context_id TEXT NOT NULL,
  place INTEGER NOT NULL,
  language TEXT NOT NULL,
  directory TEXT NOT NULL,
  environment TEXT NOT NULL,
  description TEXT NOT NULL,
  exec INTEGER NOT NULL CHECK (exec BETWEEN 0 AND 1000000000),
  next_run INTEGER NOT NULL CHECK (next_run BETWEEN 1 AND 4294967295),
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, sandbox_id, context_id),
  FOREIGN KEY (tenant_id, sandbox_id) REFERENCES sandboxes (tenant_id, sandbox_id)
    ON DELETE CASCADE
) STRICT;
CREATE TABLE context_runs (
  tenant_id INTEGER NOT NULL,
  sandbox_id TEXT NOT NULL,
  context_id TEXT NOT NULL,
  run INTEGER NOT NULL CHECK (run BETWEEN 1 AND 4294967295),
  state TEXT NOT NULL CHECK (state IN ('queued', 'running', 'ended')),
  code TEXT NOT NULL,
  environment TEXT NOT NULL,
  timeout_ms INTEGER NOT NULL,
  created_at_ms INTEGER NOT NULL,
  started_at_ms INTEGER NOT NULL DEFAULT 0,
  exec INTEGER NOT NULL DEFAULT 0 CHECK (exec BETWEEN 0 AND 1000000000),
  input_offset INTEGER NOT NULL DEFAULT 0,
  stdout_begin INTEGER NOT NULL DEFAULT 0,
  stderr_begin INTEGER NOT NULL DEFAULT 0,
  speech_begin INTEGER NOT NULL DEFAULT 0,
  marks_begin INTEGER NOT NULL DEFAULT 0,
  stdout_end INTEGER NOT NULL DEFAULT 0,
  stderr_end INTEGER NOT NULL DEFAULT 0,
  speech_end INTEGER NOT NULL DEFAULT 0,
  wall_us INTEGER NOT NULL DEFAULT 0,
  verdict TEXT NOT NULL DEFAULT '',
  exit_code INTEGER,
  signal INTEGER,
  limits_hit INTEGER NOT NULL DEFAULT 0,
  state_lost INTEGER NOT NULL DEFAULT 0 CHECK (state_lost IN (0, 1)),
  failure TEXT NOT NULL DEFAULT '',
  PRIMARY KEY (tenant_id, sandbox_id, context_id, run),
  FOREIGN KEY (tenant_id, sandbox_id, context_id)
    REFERENCES contexts (tenant_id, sandbox_id, context_id) ON DELETE CASCADE,
  CHECK ((state = 'ended') = (verdict <> ''))
) STRICT;
CREATE INDEX context_runs_open ON context_runs (sandbox_id, context_id, run)
  WHERE state <> 'ended';
ALTER TABLE idempotency_keys ADD COLUMN context_id TEXT;
ALTER TABLE idempotency_keys ADD COLUMN run INTEGER;
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN network TEXT NOT NULL DEFAULT '{}'
)sql",
    // A sandbox that is paused is "running" with a time: the column `state` has its values in a
    // CHECK, and a table that others refer to cannot be made anew without losing their rows.
    R"sql(
ALTER TABLE sandboxes ADD COLUMN paused_at_ms INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN on_ttl TEXT NOT NULL DEFAULT 'delete'
  CHECK (on_ttl IN ('delete', 'pause'));
ALTER TABLE sandboxes ADD COLUMN auto_resume INTEGER NOT NULL DEFAULT 0
  CHECK (auto_resume IN (0, 1));
ALTER TABLE context_runs ADD COLUMN frozen_ms INTEGER NOT NULL DEFAULT 0 CHECK (frozen_ms >= 0);
)sql",
    R"sql(
CREATE TABLE snapshots (
  tenant_id INTEGER NOT NULL REFERENCES tenants (tenant_id),
  snapshot_id TEXT NOT NULL UNIQUE CHECK (length(snapshot_id) = 20),
  parent_id TEXT CHECK (length(parent_id) = 20),
  sandbox_id TEXT NOT NULL CHECK (length(sandbox_id) = 20),
  label TEXT NOT NULL,
  metadata TEXT NOT NULL,
  reason TEXT NOT NULL CHECK (reason IN ('asked', 'rollback', 'fork', 'checkpoint', 'diff')),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  created_at_ms INTEGER NOT NULL,
  template_name TEXT NOT NULL,
  image BLOB NOT NULL CHECK (length(image) = 32),
  cpu_millis INTEGER NOT NULL,
  memory_bytes INTEGER NOT NULL,
  pids INTEGER NOT NULL,
  disk_bytes INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, snapshot_id),
  FOREIGN KEY (tenant_id, parent_id) REFERENCES snapshots (tenant_id, snapshot_id)
) STRICT;
CREATE INDEX snapshots_by_age ON snapshots (tenant_id, created_at_ms, snapshot_id);
CREATE INDEX snapshots_by_parent ON snapshots (tenant_id, parent_id);
ALTER TABLE sandboxes ADD COLUMN snapshot_id TEXT;
ALTER TABLE sandboxes ADD COLUMN inherited_bytes INTEGER NOT NULL DEFAULT 0
  CHECK (inherited_bytes >= 0);
ALTER TABLE sandboxes ADD COLUMN restoring INTEGER NOT NULL DEFAULT 0 CHECK (restoring IN (0, 1));
ALTER TABLE sandboxes ADD COLUMN checkpoint TEXT NOT NULL DEFAULT 'none'
  CHECK (checkpoint IN ('none', 'each'));
)sql",
    R"sql(
CREATE TABLE tenant_settings (
  tenant_id INTEGER PRIMARY KEY REFERENCES tenants (tenant_id) ON DELETE CASCADE,
  e2b_internet INTEGER NOT NULL CHECK (e2b_internet IN (0, 1))
) STRICT;
)sql",
    R"sql(
ALTER TABLE tenant_settings ADD COLUMN network TEXT NOT NULL DEFAULT '{}';
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN isolation TEXT NOT NULL DEFAULT 'jail'
  CHECK (isolation IN ('jail', 'gvisor', 'microvm'));
)sql",
    R"sql(
CREATE TABLE volumes (
  tenant_id INTEGER NOT NULL REFERENCES tenants (tenant_id),
  volume_id TEXT NOT NULL UNIQUE CHECK (length(volume_id) = 20),
  name TEXT NOT NULL CHECK (name <> ''),
  bytes INTEGER NOT NULL CHECK (bytes > 0),
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name)
) STRICT;
ALTER TABLE sandboxes ADD COLUMN volumes TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
ALTER TABLE execs ADD COLUMN record BLOB NOT NULL DEFAULT x'';
ALTER TABLE sandboxes ADD COLUMN persistence TEXT NOT NULL DEFAULT 'ephemeral'
  CHECK (persistence IN ('ephemeral', 'persistent'));
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN exec_user TEXT NOT NULL DEFAULT 'user';
ALTER TABLE sandboxes ADD COLUMN exec_directory TEXT NOT NULL DEFAULT '';
)sql",
    R"sql(
ALTER TABLE snapshots ADD COLUMN manifest TEXT CHECK (length(manifest) = 64);
ALTER TABLE snapshots ADD COLUMN sealed_bytes INTEGER NOT NULL DEFAULT 0
  CHECK (sealed_bytes >= 0);
ALTER TABLE sandboxes ADD COLUMN transient INTEGER NOT NULL DEFAULT 0 CHECK (transient IN (0, 1));
)sql",
    R"sql(
CREATE TABLE template_tags (
  tenant_id INTEGER NOT NULL,
  name TEXT NOT NULL,
  tag TEXT NOT NULL CHECK (tag <> ''),
  image BLOB NOT NULL,
  created_at_ms INTEGER NOT NULL,
  PRIMARY KEY (tenant_id, name, tag),
  FOREIGN KEY (tenant_id, name, image) REFERENCES templates (tenant_id, name, image)
    ON DELETE CASCADE
) STRICT;
)sql",
    // 64 GiB, as a tenant without a row has.
    R"sql(
ALTER TABLE tenant_settings ADD COLUMN sealed_bytes INTEGER NOT NULL DEFAULT 68719476736
  CHECK (sealed_bytes >= 0);
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN files_only_after_ms INTEGER NOT NULL DEFAULT 0
  CHECK (files_only_after_ms >= 0);
ALTER TABLE sandboxes ADD COLUMN released TEXT;
)sql",
    R"sql(
ALTER TABLE sandboxes ADD COLUMN files_only_under_pressure INTEGER NOT NULL DEFAULT 0
  CHECK (files_only_under_pressure IN (0, 1));
)sql",
    // One that waited in the pool is stored as running.
    R"sql(
CREATE TRIGGER usage_of_warm_sandbox AFTER INSERT ON sandboxes WHEN new.state = 'running' BEGIN
  INSERT INTO usage_totals VALUES (new.tenant_id, new.created_at_ms, 0, 0, 0, 0, 0, 0, 0)
    ON CONFLICT (tenant_id) DO NOTHING;
  UPDATE usage_totals SET sandboxes = sandboxes + 1 WHERE tenant_id = new.tenant_id;
END;
)sql",
    // Nothing: its sandbox has gone before that was stored.
    R"sql(
ALTER TABLE snapshots ADD COLUMN isolation TEXT
  CHECK (isolation IN ('jail', 'gvisor', 'microvm'));
UPDATE snapshots SET isolation =
  (SELECT s.isolation FROM sandboxes AS s WHERE s.sandbox_id = snapshots.sandbox_id);
)sql",
    // Numbers in place of the clock's milliseconds. Rows that are there get them in the order that
    // they had: a snapshot before the runs of its millisecond, an exec before a context's run.
    R"sql(
CREATE TABLE sequence (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  starts INTEGER NOT NULL CHECK (starts BETWEEN 0 AND 8388607)
) STRICT;
INSERT INTO sequence (only, starts) VALUES (1, 0);
ALTER TABLE keys ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE templates ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN paused_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE snapshots ADD COLUMN cut_sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE execs ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;
ALTER TABLE context_runs ADD COLUMN sequence INTEGER NOT NULL DEFAULT 0;

CREATE TABLE numbered (
  kind INTEGER NOT NULL, item INTEGER NOT NULL, number INTEGER NOT NULL,
  PRIMARY KEY (kind, item)
) WITHOUT ROWID;
INSERT INTO numbered
  SELECT kind, item, row_number() OVER (ORDER BY time, kind, part, place) FROM (
    SELECT 0 AS kind, rowid AS item, created_at_ms AS time, '' AS part, rowid AS place FROM keys
    UNION ALL SELECT 1, rowid, created_at_ms, '', rowid FROM templates
    UNION ALL SELECT 2, rowid, created_at_ms, sandbox_id, 0 FROM sandboxes
    UNION ALL SELECT 3, rowid, created_at_ms, snapshot_id, 0 FROM snapshots
    UNION ALL SELECT 4, rowid, created_at_ms, sandbox_id, exec FROM execs
    UNION ALL SELECT 5, rowid, created_at_ms, context_id, run FROM context_runs
    UNION ALL SELECT 6, rowid, paused_at_ms, sandbox_id, 0 FROM sandboxes WHERE paused_at_ms <> 0);
UPDATE keys SET sequence = (SELECT number FROM numbered WHERE kind = 0 AND item = keys.rowid);
UPDATE templates SET sequence =
  (SELECT number FROM numbered WHERE kind = 1 AND item = templates.rowid);
UPDATE sandboxes SET
  sequence = (SELECT number FROM numbered WHERE kind = 2 AND item = sandboxes.rowid),
  paused_sequence =
    ifnull((SELECT number FROM numbered WHERE kind = 6 AND item = sandboxes.rowid), 0);
UPDATE snapshots SET sequence =
  (SELECT number FROM numbered WHERE kind = 3 AND item = snapshots.rowid);
UPDATE snapshots SET cut_sequence = sequence;
UPDATE execs SET sequence = (SELECT number FROM numbered WHERE kind = 4 AND item = execs.rowid);
UPDATE context_runs SET sequence =
  (SELECT number FROM numbered WHERE kind = 5 AND item = context_runs.rowid);
DROP TABLE numbered;

DROP INDEX sandboxes_by_age;
CREATE INDEX sandboxes_by_age ON sandboxes (tenant_id, sequence, sandbox_id);
DROP INDEX snapshots_by_age;
CREATE INDEX snapshots_by_age ON snapshots (tenant_id, sequence, snapshot_id);
)sql",
    // Keys are there from the first start on.
    R"sql(
CREATE TABLE epoch (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  identity BLOB NOT NULL CHECK (length(identity) = 16),
  synced INTEGER NOT NULL CHECK (synced >= 0),
  running INTEGER NOT NULL CHECK (running >= 0),
  pairing TEXT NOT NULL CHECK (pairing IN ('fresh', 'upgraded', 'paired', 'setting_aside')),
  joined_at_ms INTEGER NOT NULL
) STRICT;
INSERT INTO epoch VALUES (1, randomblob(16), 0, 0,
  iif(EXISTS (SELECT 1 FROM keys), 'upgraded', 'fresh'), 0);
CREATE TRIGGER sandbox_made AFTER INSERT ON sandboxes BEGIN
  UPDATE epoch SET running = running + 1;
END;
CREATE TRIGGER sandbox_changed AFTER UPDATE OF state, released, paused_at_ms ON sandboxes BEGIN
  UPDATE epoch SET running = running + 1;
END;
CREATE TRIGGER sandbox_gone AFTER DELETE ON sandboxes BEGIN
  UPDATE epoch SET running = running + 1;
END;
)sql",
};

}  // namespace

std::span<const Sql> catalog_migrations() { return kMigrations; }

}  // namespace atl::store
