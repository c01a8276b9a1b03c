//! `springtide bench evict`: what the policies get out of a trace.

use springtide_core::evict::Kind;

use crate::args::{self, Replay};
use crate::commands::serve;
use crate::exit::Failure;
use crate::output::Out;
use crate::reports::evict::EvictReport;
use crate::workload::{self, Record};

/// Runs the requests through a cache of each size under each policy, and prints what was hit.
pub fn run(args: &args::Evict) -> Result<(), Failure> {
    let report = compare(args)?;
    Out::stdout(args.json.format()).report(&report)
}

fn compare(args: &args::Evict) -> Result<EvictReport, Failure> {
    let kinds = kinds(&args.policy)?;
    let requests = requests(args)?;
    let mut report = EvictReport::default();
    for &blocks in &args.blocks {
        for &kind in &kinds {
            let room = usize::try_from(blocks).unwrap_or(usize::MAX);
            report.add(kind, blocks, workload::prefix_hits(kind, room, &requests));
        }
    }
    Ok(report)
}

/// The policies of these names, all if none is named.
fn kinds(names: &[String]) -> Result<Vec<Kind>, Failure> {
    if names.is_empty() {
        Ok(Kind::ALL.into())
    } else {
        names.iter().map(|name| serve::policy(name)).collect()
    }
}

fn requests(args: &args::Evict) -> Result<Vec<Record>, Failure> {
    let most = args.requests.map(|most| usize::try_from(most).unwrap_or(usize::MAX));
    match &args.trace {
        Some(file) => workload::read(file, most).map_err(Failure::new),
        None => Ok(workload::generate(args.seed, most.unwrap_or(Replay::GENERATED as usize))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Json;
    use crate::exit::Exit;

    fn args() -> args::Evict {
        let (trace, policy, json) = (None, Vec::new(), Json { json: true });
        args::Evict { trace, blocks: vec![100, 1_000], policy, requests: Some(300), seed: 1, json }
    }

    #[test]
    fn every_size_has_a_row_for_every_policy() {
        let rows = compare(&args()).unwrap().0;
        let names: Vec<_> = rows.iter().map(|row| (row.blocks, row.policy)).collect();
        let expected = [100, 1_000].map(|blocks| Kind::ALL.map(|kind| (blocks, kind.name())));
        assert_eq!(names, expected.as_flattened());
        assert!(
            rows.iter().all(|row| row.hits > 0 && row.evicted > 0 && row.references == rows[0].references)
        );
        assert_ne!(compare(&args::Evict { seed: 2, ..args() }).unwrap().0, rows);
    }

    #[test]
    fn a_trace_that_is_not_there_is_named() {
        let failure = compare(&args::Evict { trace: Some("/nowhere/t.jsonl".into()), ..args() }).unwrap_err();
        assert_eq!(
            (failure.exit(), failure.to_string().as_str()),
            (Exit::Failed, "there is no trace /nowhere/t.jsonl")
        );
    }

    #[test]
    fn without_a_name_all_policies_are_compared() {
        assert_eq!(kinds(&[]), Ok(Kind::ALL.to_vec()));
        assert_eq!(kinds(&["s3fifo".to_owned()]), Ok(vec![Kind::S3Fifo]));
    }

    #[test]
    fn an_unknown_policy_is_named_with_those_there_are() {
        let failure = kinds(&["lru".to_owned(), "fifo".to_owned()]).unwrap_err();
        assert_eq!(failure.exit(), Exit::Usage);
        let text = failure.to_string();
        assert!(text.contains("\"fifo\""), "{text}");
        assert!(Kind::ALL.iter().all(|kind| text.contains(kind.name())), "{text}");
    }
}
