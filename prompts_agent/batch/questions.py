"""Questions: what a lead asks of a batch, as SQL over its tables, in DuckDB.

`latest` is the last capture of each job; a job without a date is its last by address. A job whose
hours nobody gave is counted as running all week, 168 hours, and each answer says so.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["QUESTIONS", "VIEWS", "Question"]

VIEWS = """
create view latest as
  select *, coalesce(hours_per_week, 168) as hours from jobs where report is not null
  qualify row_number() over (
    partition by job order by recorded_at desc nulls last, address desc, key desc
  ) = 1;

create view parts as
  unpivot (
    select key, job, devices, hours, period_s, compute_s as compute,
      exposed_collective_s as "exposed communication", host_transfer_s as "host transfer",
      input_s as input, idle_s as idle
    from latest where period_s > 0
  )
  on compute, "exposed communication", "host transfer", input, idle
  into name part value seconds;

create view gains as
  select l.job, l.devices, l.hours, p.rank, p.changes, p.changed, p.mesh, p.speedup,
    p.speedup_low, p.rung, l.devices * l.hours * (1 - 1 / p.speedup) as chip_hours,
    l.devices * l.hours * (1 - 1 / p.speedup_low) as chip_hours_low
  from latest l join proposals p using (key)
  where p.speedup > 1
  qualify row_number() over (partition by l.job order by p.speedup desc, p.rank) = 1;

create view dated as
  select * from jobs where report is not null and recorded_at is not null;

create view followed as
  select b.job, b.recorded_at as proposed_at, a.recorded_at as measured_at, b.mesh as before,
    p.mesh as after, p.rank, b.period_s as before_s, p.step_time_s as predicted_s, p.low_s,
    p.high_s, a.period_s as measured_s
  from dated b join proposals p using (key)
    join dated a on a.job = b.job and a.recorded_at > b.recorded_at and a.mesh = p.mesh
  where b.mesh is distinct from p.mesh
  qualify row_number() over (
      partition by a.key order by b.recorded_at desc, p.rank
    ) = 1
    and row_number() over (partition by b.key, p.rank order by a.recorded_at) = 1;
"""


class Question(NamedTuple):
    """A question, the SQL that answers it, and what to say where there is no row."""

    name: str
    title: str
    sql: str
    none: str
    note: str = ""


QUESTIONS = (
    Question(
        "waits",
        "Where the chips wait",
        """
        select part,
          round(sum(devices * hours * seconds / period_s), 1) as "chip-hours a week",
          round(100 * sum(devices * hours * seconds / period_s)
            / sum(sum(devices * hours * seconds / period_s)) over (), 1) as "% of known",
          count(distinct job) filter (seconds > 0.05 * period_s) as "jobs over 5%"
        from parts where devices is not null
        group by part having sum(seconds) > 0 order by 2 desc
        """,
        "No trace tells how its steps are spent.",
        "The latest capture of each job; without hours_per_week a job counts as 168 hours.",
    ),
    Question(
        "gains",
        "Which jobs gain most from one change",
        """
        select job, changes as change, devices as chips, round(speedup, 2) as speedup,
          round(speedup_low, 2) as "at least", rung,
          round(chip_hours, 1) as "chip-hours a week",
          round(chip_hours_low, 1) as "at least "
        from gains order by chip_hours desc, job limit {limit}
        """,
        "No proposal is faster than what runs, where that is known.",
        "Each job's best proposal: what it saves if it does the same work. A negative lower bound "
        "means that it may be slower.",
    ),
    Question(
        "findings",
        "Which findings repeat",
        """
        select f.kind as finding, f.axis, count(distinct f.job) as jobs,
          round(100 * median(f.share), 1) as "median % of step",
          round(sum(l.devices * l.hours * f.share), 1) as "chip-hours a week",
          case when bool_or(f.is_sharding) then 'yes' else 'no' end as sharding
        from findings f join latest l using (key)
        group by f.kind, f.axis order by jobs desc, 5 desc nulls last, finding limit {limit}
        """,
        "No finding.",
    ),
    Question(
        "worse",
        "What got worse",
        """
        with bounds as (
          select coalesce({since}, min(recorded_at)) as since,
            coalesce({until}, max(recorded_at)) as until from dated
        ), within as (
          select d.* from dated d, bounds
          where recorded_at >= since and recorded_at <= until and period_s > 0
        ), ends as (
          select job, min_by(period_s, recorded_at) as first_s, max_by(period_s, recorded_at)
            as last_s, min(recorded_at) as first_at, max(recorded_at) as last_at,
            min_by(mesh, recorded_at) as first_mesh, max_by(mesh, recorded_at) as last_mesh,
            min_by(first_finding, recorded_at) as first_finding,
            max_by(first_finding, recorded_at) as last_finding,
            max_by(devices, recorded_at) as devices
          from within group by job having count(distinct recorded_at) > 1
        )
        select job, strftime(first_at, '%Y-%m-%d') as "from", strftime(last_at, '%Y-%m-%d') as "to",
          round(1e3 * first_s, 2) as "step before, ms", round(1e3 * last_s, 2) as "step after, ms",
          round(100 * (last_s / first_s - 1), 1) as "% slower",
          case when first_mesh is distinct from last_mesh
            then coalesce(first_mesh, '?') || ' → ' || coalesce(last_mesh, '?') end as mesh,
          last_finding as "waits for"
        from ends where last_s > first_s * 1.02 order by last_s / first_s desc, job limit {limit}
        """,
        "No job has two captures of which the later is over 2% slower.",
        "Dates are those of the manifest, of a run's name, or of the file.",
    ),
    Question(
        "followed",
        "Which proposals were followed, and how predictions held",
        """
        select job, strftime(measured_at, '%Y-%m-%d') as measured, before || ' → ' || after
            as change, round(1e3 * before_s, 2) as "before, ms",
          round(1e3 * predicted_s, 2) as "predicted, ms", round(1e3 * measured_s, 2)
            as "measured, ms", round(100 * (predicted_s / measured_s - 1), 1) as "error, %",
          case when low_s is null then null when measured_s between low_s and high_s then 'yes'
            else 'no' end as "in interval"
        from followed order by measured_at desc, job limit {limit}
        """,
        "No later capture of a job runs a mesh that was proposed for it.",
        "A proposal counts as followed where a later capture of the job has its mesh.",
    ),
    Question(
        "failed",
        "What could not be read",
        """
        select coalesce(reason, status) as reason, status, count(*) as rows,
          min(address) as "for example"
        from jobs where report is null group by 1, 2 order by 3 desc, 1 limit {limit}
        """,
        "Every row has a report.",
    ),
)
