-- Version 1 of instar's tables. schema.py runs this text in one transaction and replaces {schema}
-- by the quoted name of the schema. Functions carry the version of their signature, so that replicas
-- of two releases can run side by side: a migration adds functions, a later release removes them.

-- One row. Every write locks it first and updates it last: so revisions are in commit order, without
-- holes. The fill factor leaves room for its next versions on the same page.
create table {schema}.head (
  one boolean primary key default true check (one),
  revision bigint not null,
  compacted bigint not null,
  identity uuid not null default gen_random_uuid()
) with (fillfactor = 10);
insert into {schema}.head (revision, compacted) values (1, 0);

-- One row per write. previous is the revision of the key that the write superseded (0: it was absent),
-- value is null for a deletion, stamp is a random number of the batch, which tells two histories apart.
create table {schema}.log (
  revision bigint primary key,
  previous bigint not null,
  stamp bigint not null,
  key bytea not null,
  value bytea
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0,
  autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 20000
);
alter table {schema}.log alter column value set storage external;
-- Whatever ANALYZE finds, one key is looked up by its index. With statistics of few keys the planner
-- would walk back over all revisions to find one.
alter table {schema}.log alter column key set (n_distinct = -1);
create unique index log_key on {schema}.log (key, revision desc);

-- The last batch of each running process and its answers: what makes an unknown outcome knowable.
create table {schema}.writer (
  id uuid primary key,
  batch bigint not null,
  answers bigint[] not null,
  seen timestamptz not null default now()
) with (fillfactor = 20);

-- How far compaction has deleted rows. A table of its own, because deleting must not lock the head.
create table {schema}.sweep (
  one boolean primary key default true check (one),
  revision bigint not null
) with (fillfactor = 10);
insert into {schema}.sweep (revision) values (0);

-- Each server history (system identifier and timeline) that this data has lived on, and the last
-- revision that it took over.
create table {schema}.history (
  ordinal integer primary key,
  system text not null,
  timeline bigint not null,
  forked bigint not null,
  entered timestamptz not null default now(),
  unique (system, timeline)
);

-- Commits a batch. Returns for each write its revision, or -1 minus the revision found instead of
-- the expected one.
create function {schema}.commit_1(
  who uuid, number bigint, stamped bigint, keys bytea[], vals bytea[], expected bigint[]
) returns bigint[] language plpgsql volatile security definer
set search_path = pg_catalog, pg_temp as $$
declare
  latest bigint;
  last bigint;
  accepted bigint;
  answered bigint[];
  single bytea := keys[1];
  standing bigint := 0;
begin
  -- A batch of one write, the usual one of a lonely writer, needs simple statements only: the general
  -- one below takes longer to start than to run.
  if cardinality(keys) = 1 then
    update {schema}.head set revision = revision + 1 returning revision into strict latest;
    select case when value is null then 0 else revision end as newest into standing from {schema}.log
    where key >= single and key <= single order by key, revision desc limit 1;
    standing := coalesce(standing, 0);
    if standing = expected[1] then
      answered := array[latest];
      insert into {schema}.log (revision, previous, stamp, key, value)
      values (latest, standing, stamped, single, vals[1]);
      perform pg_notify('{channel}', latest::text);
    else
      answered := array[-1 - standing];
      update {schema}.head set revision = latest - 1;
    end if;
    update {schema}.writer set batch = number, answers = answered, seen = now()
    where id = who and batch = number - 1;
    if not found then
      -- The first batch has no row to update. For any other, a row in the way is an error.
      select batch into last from {schema}.writer where id = who;
      if last is not null or number <> 1 then
        raise exception 'batch % of writer % follows batch %', number, who, last
        using errcode = 'IN001';
      end if;
      insert into {schema}.writer (id, batch, answers) values (who, number, answered);
    end if;
    return answered;
  end if;
  select revision into strict latest from {schema}.head for update;
  -- Each statement below takes its snapshot after the lock, so it sees every earlier batch.
  select batch into last from {schema}.writer where id = who;
  if coalesce(last, 0) <> number - 1 then
    raise exception 'batch % of writer % follows batch %', number, who, last using errcode = 'IN001';
  end if;
  with asked as (
    select u.place, u.k, u.v, u.e, coalesce(l.actual, 0) as actual
    from unnest(keys, vals, expected) with ordinality u(k, v, e, place)
    left join lateral (
      select case when value is null then 0 else revision end as actual
      -- not "key = u.k": only the index by key has this order, so the planner has no choice
      from {schema}.log where key >= u.k and key <= u.k order by key, revision desc limit 1
    ) l on true
  ), numbered as (
    select *, latest + row_number() over (order by place) as revision from asked where actual = e
  ), inserted as (
    insert into {schema}.log (revision, previous, stamp, key, value)
    select revision, e, stamped, k, v from numbered returning 1
  )
  select array_agg(coalesce(numbered.revision, -1 - asked.actual) order by asked.place),
    (select count(*) from inserted)
  into answered, accepted from asked left join numbered using (place);
  insert into {schema}.writer (id, batch, answers) values (who, number, answered)
  on conflict (id) do update set batch = excluded.batch, answers = excluded.answers, seen = now();
  if accepted > 0 then
    update {schema}.head set revision = latest + accepted;
    perform pg_notify('{channel}', (latest + accepted)::text);
  end if;
  return answered;
end $$;

-- Tells what became of a batch: its answers, or null and the batch can no longer be committed,
-- because its number is used up. The update makes this transaction wait for a synchronous standby,
-- so answers are told only when they are durable.
create function {schema}.settle_1(who uuid, number bigint) returns bigint[]
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  last bigint;
  answered bigint[];
begin
  perform 1 from {schema}.head for update;
  select batch, answers into last, answered from {schema}.writer where id = who;
  if last >= number then
    update {schema}.writer set seen = now() where id = who;
    return nullif(answered, '{}'); -- empty: settled before, by a call whose answer was lost
  end if;
  insert into {schema}.writer (id, batch, answers) values (who, number, '{}')
  on conflict (id) do update set batch = excluded.batch, answers = excluded.answers, seen = now();
  return null;
end $$;

-- Notes that this data now lives on the given server history. The first to arrive on a new one raises
-- the revision by a large step, so that revisions of a lost history are never used again. Returns the
-- last revision that all histories since the one with ordinal "since" took over (null: none is newer).
create function {schema}.enter_1(
  on_system text, on_timeline bigint, since integer,
  out identity uuid, out revision bigint, out ordinal integer, out forked bigint
) language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  select h.ordinal into enter_1.ordinal from {schema}.history h
  where h.system = on_system and h.timeline = on_timeline;
  if not found then
    perform 1 from {schema}.head for update;
    select h.ordinal into enter_1.ordinal from {schema}.history h
    where h.system = on_system and h.timeline = on_timeline;
    if not found then
      select coalesce(max(h.ordinal), 0) + 1 into enter_1.ordinal from {schema}.history h;
      insert into {schema}.history (ordinal, system, timeline, forked)
      select enter_1.ordinal, on_system, on_timeline, head.revision from {schema}.head;
      if enter_1.ordinal > 1 then
        update {schema}.head set revision = head.revision + 10000000;
        perform pg_notify('{channel}', '');
      end if;
    end if;
  end if;
  select head.identity, head.revision into enter_1.identity, enter_1.revision from {schema}.head;
  select min(h.forked) into enter_1.forked from {schema}.history h where h.ordinal > since;
end $$;

-- Marks history up to target as compacted: from now on readers refuse older revisions. Returns the
-- head's revision and the compacted revision.
create function {schema}.compact_1(target bigint, out latest bigint, out oldest bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  select revision, compacted into latest, oldest from {schema}.head for update;
  if target > oldest and target <= latest then
    update {schema}.head set compacted = target;
    oldest := target;
  end if;
end $$;

-- Deletes a slice of what is compacted: rows superseded by one of the next rows, and deletions among
-- them. Returns the rows deleted, or null when nothing is left or another process sweeps.
create function {schema}.sweep_1(slice integer) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  lowest bigint;
  highest bigint;
  goal bigint;
  deleted integer;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('instar sweep {channel}', 0)) then
    return null;
  end if;
  select compacted into strict goal from {schema}.head;
  select revision into strict lowest from {schema}.sweep;
  if lowest >= goal then
    delete from {schema}.writer where seen < now() - interval '1 day';
    return null;
  end if;
  select max(part.revision) into highest from (
    select revision from {schema}.log where revision > lowest and revision <= goal
    order by revision limit slice
  ) part;
  if (select count(*) from (
    select 1 from {schema}.log where revision > lowest and revision <= goal limit slice
  ) counted) < slice then
    highest := goal;
  end if;
  delete from {schema}.log where revision in (
    select previous from {schema}.log where revision > lowest and revision <= highest and previous > 0
    union all
    select revision from {schema}.log where revision > lowest and revision <= highest and value is null
  );
  get diagnostics deleted = row_count;
  update {schema}.sweep set revision = highest;
  return deleted;
end $$;

-- Writes something that changes nothing: with a synchronous standby its confirmation proves that this
-- server is still the primary. Returns the revision.
create function {schema}.touch_1(who uuid) returns bigint
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into {schema}.writer (id, batch, answers) values (who, 0, '{}')
  on conflict (id) do update set seen = now();
  return (select revision from {schema}.head);
end $$;

revoke all on all functions in schema {schema} from public;
