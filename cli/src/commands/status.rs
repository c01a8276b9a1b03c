//! `springtide status`.

use springtide::Error;

use super::pool::{Pool, failed};
use crate::args;
use crate::exit::Failure;
use crate::output::Out;
use crate::reports::status::StatusReport;

/// Prints how the pool is.
pub fn run(args: &args::Status) -> Result<(), Failure> {
    let pool = Pool::connect(&args.connect)?;
    let report = pool.run(report(&pool, args.connect.master.to_string()));
    pool.close();
    Out::stdout(args.json.format()).report(&report.map_err(|error| failed("status", &error))?)
}

async fn report(pool: &Pool, master: String) -> Result<StatusReport, Error> {
    let client = pool.client();
    let mut report = StatusReport::new(master, &client.figures().await?);
    // This command is a member, too, for as long as it runs.
    let own = client.incarnation();
    client
        .members(|member| {
            if member.incarnation != own {
                report.member(member)
            }
        })
        .await?;
    client.segments(|segment| report.segment(segment)).await?;
    Ok(report)
}
