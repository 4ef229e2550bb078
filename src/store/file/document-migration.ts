// The step of the schema that turns rows of columns into rows of documents, with the fields that there were when it was made.

type Fields = Readonly<Record<string, string>>;

const text = (column: string): string => `json_quote(${column})`;
/** A number, or what is JSON already. */
const raw = (column: string): string => `coalesce(${column}, 'null')`;
const flag = (column: string): string => `iif(${column} = 1, 'true', 'false')`;
/** Nanoseconds as digits, because JSON's numbers end at 2^53. */
const ns = (column: string): string => `coalesce('"' || (${column}) || '"', 'null')`;
/** Stored as two's complement; as digits, too. */
const bytes = (column: string): string =>
  `iif(${column} IS NULL, 'null', printf('"%u"', ${column}))`;
/** Nanoseconds of the wall clock as RFC 3339. */
const time = (column: string): string => {
  const fraction = `((${column}) % 1000000000 + 1000000000) % 1000000000`;
  return `coalesce(strftime('"%Y-%m-%dT%H:%M:%S', ((${column}) - ${fraction}) / 1000000000, 'unixepoch') ||
    printf('.%09dZ"', ${fraction}), 'null')`;
};
const object = (fields: Fields): string =>
  `'{' || ${Object.entries(fields)
    .map(([name, value]) => `'"${name}":' || (${value})`)
    .join(" || ',' || ")} || '}'`;

const ledger = (kind: string, table: string, row: { id: string; fields: Fields }): string =>
  `INSERT INTO ledger SELECT '${kind}', ${row.id}, ${object(row.fields)} FROM ${table};
  DROP TABLE ${table};`;

const history = (table: string, row: { kind: string; key: string; at: string; fields: Fields }) =>
  `INSERT INTO history (kind, key, at, watched, document)
    SELECT '${row.kind}', ${row.key}, ${row.at}, coalesce((SELECT watched FROM ledger_state), 0), ${object(row.fields)}
    FROM ${table} ORDER BY rowid;
  DROP TABLE ${table};`;

const step = object({
  name: text("value ->> '$.name'"),
  startedAt: time("CAST(value ->> '$.startedAt' AS INTEGER)"),
  tookNs: ns("value ->> '$.took'"),
  error: text("value ->> '$.error'"),
});

export const documents = `
  CREATE TABLE ledger (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    document TEXT NOT NULL,
    PRIMARY KEY (kind, id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE history (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    kind TEXT NOT NULL,
    key TEXT UNIQUE,
    at INTEGER NOT NULL,
    watched INTEGER NOT NULL,
    document TEXT NOT NULL
  ) STRICT;
  CREATE INDEX history_by_time ON history (kind, at);
  CREATE INDEX history_by_age ON history (kind, seq);
  ${history("pass", {
    kind: "pass",
    key: "'pass ' || id",
    at: "started_at",
    fields: {
      id: text("id"),
      kind: text("kind"),
      purpose: text("purpose"),
      signals: raw("signals"),
      startedAt: time("started_at"),
      endedAt: time("ended_at"),
      dryRun: flag("dry_run"),
      error: text("error"),
      imagesEnd: text("images_end"),
      containersEnd: text("containers_end"),
      removed: raw("removed"),
      failed: raw("failed"),
      wantedBytes: bytes("wanted_bytes"),
      reportedFreedBytes: bytes("reported_freed_bytes"),
      measuredFreedBytes: bytes("measured_freed_bytes"),
      availableBeforeBytes: bytes("available_before_bytes"),
      availableAfterBytes: bytes("available_after_bytes"),
      capacityBytes: bytes("capacity_bytes"),
      steps: `'[' || coalesce((SELECT group_concat(${step}, ',') FROM json_each(steps)), '') || ']'`,
    },
  })}
  ${history("removal", {
    kind: "removal",
    key: "'removal ' || pass_id || ' ' || kind || ' ' || subject",
    at: "at",
    fields: {
      passId: text("pass_id"),
      kind: text("kind"),
      subject: text("subject"),
      names: raw("names"),
      trigger: text('"trigger"'),
      signal: text("signal"),
      reason: text("reason"),
      result: text("result"),
      message: text("message"),
      reportedBytes: bytes("reported_bytes"),
      measuredBytes: bytes("measured_bytes"),
      settled: text("settled"),
      at: time("at"),
      tookNs: ns("took"),
    },
  })}
  ${history("event", {
    kind: "event",
    key: "NULL",
    at: "at",
    fields: {
      at: time("at"),
      passId: text("pass_id"),
      reason: text("reason"),
      message: text("message"),
    },
  })}
  ${history("disk_sample", {
    kind: "sample",
    key: "NULL",
    at: "at",
    fields: {
      at: time("at"),
      device: text("device"),
      path: text("path"),
      mountpoint: text("mountpoint"),
      roles: raw("roles"),
      capacityBytes: bytes("capacity_bytes"),
      availableBytes: bytes("available_bytes"),
      inodes: bytes("inodes"),
      inodesFree: bytes("inodes_free"),
    },
  })}
  INSERT INTO setting SELECT 'ledger-revision', 'migrated' FROM ledger_state;
  ${ledger("state", "ledger_state", {
    id: "''",
    fields: {
      bootId: text("boot_id"),
      observedAt: time("observed_at"),
      uptimeNs: ns("uptime"),
      watchedNs: ns("watched"),
      graceUntilNs: ns("grace_until"),
      graceReason: text("grace_reason"),
      hadContainers: flag("had_containers"),
      keepDirectories: raw("keep_directories"),
    },
  })}
  ${ledger("images", "ledger_image", {
    id: "id",
    fields: {
      firstSeenAt: time("first_seen_at"),
      firstSeenWatchedNs: ns("first_seen_watched"),
      lastUsedAt: time("last_used_at"),
      lastUsedWatchedNs: ns("last_used_watched"),
      names: text("names"),
      earlierNames: raw("earlier_names"),
      sizeBytes: bytes("size_bytes"),
      ghost: `iif(ghost_since IS NULL, 'null', ${object({
        since: time("ghost_since"),
        attempts: raw("ghost_attempts"),
        retryWatchedNs: ns("ghost_retry_watched"),
      })})`,
    },
  })}
  ${ledger("containers", "ledger_container", {
    id: "id",
    fields: { imageVolumes: raw("image_volumes"), finishedAt: time("finished_at") },
  })}
  ${ledger("pods", "ledger_pod", {
    id: "uid",
    fields: {
      absentPasses: raw("absent_passes"),
      deadPasses: raw("dead_passes"),
      deadSinceWatchedNs: ns("dead_since_watched"),
      origin: text("origin"),
    },
  })}
  ${ledger("sandboxImages", "ledger_sandbox_image", { id: "id", fields: { name: text("name") } })}
  ${ledger("releases", "ledger_release", {
    id: "runtime",
    fields: { promptRemovals: raw("prompt_removals"), lateRemovals: raw("late_removals") },
  })}
`;
