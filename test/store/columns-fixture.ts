// A state file with a column for each field, as builds before the documents made it.

import type { Database } from "bun:sqlite";

/** `version` 1 had no history yet. */
export function makeColumns(db: Database, version: 1 | 2 | 4): void {
  db.run(LEDGER);
  if (version >= 2) db.run(HISTORY);
  if (version === 4) db.run(ADDED);
  db.run(`PRAGMA user_version = ${version}`);
}

const LEDGER = `
  CREATE TABLE ledger_state (
    id INTEGER PRIMARY KEY CHECK (id = 1),
    boot_id TEXT NOT NULL,
    observed_at INTEGER,
    uptime INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    grace_until INTEGER,
    grace_reason TEXT,
    had_containers INTEGER NOT NULL,
    keep_directories TEXT NOT NULL
  ) STRICT;
  CREATE TABLE ledger_image (
    id TEXT PRIMARY KEY,
    first_seen_at INTEGER NOT NULL,
    first_seen_watched INTEGER NOT NULL,
    last_used_at INTEGER,
    last_used_watched INTEGER,
    names TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    ghost_since INTEGER,
    ghost_attempts INTEGER,
    ghost_retry_watched INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ledger_container (
    id TEXT PRIMARY KEY,
    image_volumes TEXT,
    finished_at INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ledger_pod (
    uid TEXT PRIMARY KEY,
    absent_passes INTEGER NOT NULL,
    dead_passes INTEGER NOT NULL,
    dead_since_watched INTEGER
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ledger_sandbox_image (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE ledger_release (
    runtime TEXT PRIMARY KEY,
    prompt_removals INTEGER NOT NULL,
    late_removals INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE setting (
    key TEXT PRIMARY KEY,
    value TEXT NOT NULL
  ) STRICT, WITHOUT ROWID;
  `;

const HISTORY = `
  CREATE TABLE pass (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    purpose TEXT NOT NULL,
    signals TEXT NOT NULL,
    started_at INTEGER NOT NULL,
    ended_at INTEGER,
    dry_run INTEGER NOT NULL,
    error TEXT,
    images_end TEXT,
    containers_end TEXT,
    removed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    wanted_bytes INTEGER,
    reported_freed_bytes INTEGER,
    measured_freed_bytes INTEGER,
    available_before_bytes INTEGER,
    available_after_bytes INTEGER,
    capacity_bytes INTEGER,
    steps TEXT NOT NULL
  ) STRICT;
  CREATE INDEX pass_by_time ON pass (started_at);
  CREATE TABLE removal (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    pass_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    names TEXT NOT NULL,
    "trigger" TEXT NOT NULL,
    signal TEXT,
    reason TEXT NOT NULL,
    result TEXT NOT NULL,
    message TEXT,
    reported_bytes INTEGER,
    measured_bytes INTEGER,
    settled TEXT,
    at INTEGER NOT NULL,
    took INTEGER,
    UNIQUE (pass_id, kind, subject)
  ) STRICT;
  CREATE INDEX removal_by_time ON removal (at);
  CREATE TABLE event (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    pass_id TEXT,
    reason TEXT NOT NULL,
    message TEXT NOT NULL
  ) STRICT;
  CREATE INDEX event_by_time ON event (at);
  CREATE TABLE disk_sample (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    device TEXT NOT NULL,
    path TEXT NOT NULL,
    mountpoint TEXT NOT NULL,
    roles TEXT NOT NULL,
    capacity_bytes INTEGER NOT NULL,
    available_bytes INTEGER NOT NULL,
    inodes INTEGER NOT NULL,
    inodes_free INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX disk_sample_by_time ON disk_sample (device, at);
  `;

const ADDED = `
  ALTER TABLE ledger_image ADD COLUMN earlier_names TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE ledger_pod ADD COLUMN origin TEXT;
`;
