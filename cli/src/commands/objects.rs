//! `springtide put`, `get`, `exists`, `stat`, `ls`, `rm`.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use springtide::{Code, Error, Forcing, Pattern, Piece, PutOptions};

use super::pool::{Pool, failed};
use crate::args::{self, Selection};
use crate::exit::Failure;
use crate::output::{Format, Out, key};
use crate::reports::objects::{Listing, ObjectReport, Presence, Removal};

/// Stores a file's bytes.
pub fn put(args: &args::Put) -> Result<(), Failure> {
    let name = args.key()?;
    let value = read(&args.file)?;
    let pool = Pool::connect(&args.connect)?;
    let prefer: Vec<&str> = args.prefer.iter().map(String::as_str).collect();
    let options = PutOptions {
        replicas: args.replicas,
        soft_pin: args.soft_pin,
        hard_pin: args.hard_pin,
        preferred: &prefer,
        group: (!args.group.is_empty()).then_some(args.group.as_str()),
        ..PutOptions::default()
    };
    let stored = pool.run(pool.client().put(&name, &value, &options));
    pool.close();
    stored.map_err(|error| failed(format_args!("put \"{}\"", key(&name)), &error))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let read = if path == Path::new("-") {
        io::stdin().lock().read_to_end(&mut bytes)
    } else {
        File::open(path).and_then(|mut file| file.read_to_end(&mut bytes))
    };
    read.map_err(|error| Failure::new(format_args!("cannot read {}: {error}", path.display())))?;
    Ok(bytes)
}

/// Fetches a value, or a piece of one.
pub fn get(args: &args::Get) -> Result<(), Failure> {
    let name = args.key()?;
    let pool = Pool::connect(&args.connect)?;
    let value = if args.offset.0 == 0 && args.length.is_none() {
        pool.run(pool.client().get(&name))
    } else {
        pool.run(piece(&pool, &name, args.offset.0, args.length.map(|size| size.0)))
    };
    pool.close();
    let value = value.map_err(|error| failed(format_args!("get \"{}\"", key(&name)), &error))?;
    match &args.output {
        None => Out::stdout(Format::Table).bytes(&value),
        Some(path) => File::create(path)
            .and_then(|mut file| file.write_all(&value))
            .map_err(|error| Failure::new(format_args!("cannot write {}: {error}", path.display()))),
    }
}

/// `len` bytes from `at` on; fewer if the value ends before.
async fn piece(pool: &Pool, name: &[u8], at: u64, len: Option<u64>) -> Result<Vec<u8>, Error> {
    let rest = pool.client().stat(name).await?.len.saturating_sub(at);
    let len = len.map_or(rest, |len| len.min(rest));
    let memory = pool.client().allocate(len.max(1))?;
    let wanted = Piece { key: name, at, len: Some(len), into: memory.whole() };
    let read = pool.client().get_pieces(&[wanted]).await.pop();
    let got = read.unwrap_or_else(|| Err(Code::INTERNAL_ERROR.into()))?;
    let mut value = vec![0; got as usize];
    memory.read(0, &mut value)?;
    Ok(value)
}

/// Says whether a key is there.
pub fn exists(args: &args::Exists) -> Result<(), Failure> {
    let name = args.key()?;
    let pool = Pool::connect(&args.connect)?;
    let exists = pool.run(pool.client().exists(&name));
    pool.close();
    let exists = exists.map_err(|error| failed(format_args!("exists \"{}\"", key(&name)), &error))?;
    Presence { key: key(&name), exists }.finish(&mut Out::stdout(args.json.format()))
}

/// Prints what is known of an object.
pub fn stat(args: &args::Stat) -> Result<(), Failure> {
    let name = args.key()?;
    let pool = Pool::connect(&args.connect)?;
    let stat = pool.run(pool.client().stat(&name));
    pool.close();
    let stat = stat.map_err(|error| failed(format_args!("stat \"{}\"", key(&name)), &error))?;
    Out::stdout(args.json.format()).report(&ObjectReport::new(&name, &stat))
}

/// Keys on one page of a listing.
const PAGE: u32 = 1_024;

/// Lists objects, page by page.
pub fn ls(args: &args::Ls) -> Result<(), Failure> {
    let selection = args.selection()?;
    let pool = Pool::connect(&args.connect)?;
    let listed = list(&pool, &selection, args.limit.unwrap_or(u64::MAX), args.json.format());
    pool.close();
    listed
}

fn list(pool: &Pool, selection: &Selection, limit: u64, format: Format) -> Result<(), Failure> {
    let mut out = Out::stdout(format);
    let mut listing = Listing::new(&mut out);
    if let Selection::Key(name) = selection {
        match pool.run(pool.client().stat(name)) {
            Ok(stat) => listing.object(name, &stat)?,
            Err(error) if error.code() == Code::OBJECT_NOT_FOUND => {}
            Err(error) => return Err(failed("ls", &error)),
        }
        return listing.end();
    }
    let mut cursor = None;
    while listing.printed() < limit {
        let left = (limit - listing.printed()).min(PAGE.into()) as u32;
        let page = pool.run(pool.client().list(pattern(selection), cursor, left));
        let page = page.map_err(|error| failed("ls", &error))?;
        for (name, stat) in &page.items {
            listing.object(name, stat)?;
        }
        cursor = page.next;
        if cursor.is_none() {
            break;
        }
    }
    listing.end()
}

fn pattern(selection: &Selection) -> Pattern<'_> {
    match selection {
        Selection::All => Pattern::All,
        Selection::Key(key) | Selection::Prefix(key) => Pattern::Prefix(key),
        Selection::Regex(text) => Pattern::Regex(text),
    }
}

/// Removes objects.
pub fn rm(args: &args::Rm) -> Result<(), Failure> {
    let selection = args.selection()?;
    let force = if args.force { Forcing::Yes } else { Forcing::No };
    let pool = Pool::connect(&args.connect)?;
    let removed = match &selection {
        Selection::Key(name) => {
            let removed = pool.run(pool.client().remove(name, force)).map(|()| (1, 0));
            removed.map_err(|error| failed(format_args!("rm \"{}\"", key(name)), &error))
        }
        selection => {
            let removed = pool.run(pool.client().remove_matching(pattern(selection), force));
            removed.map_err(|error| failed("rm", &error))
        }
    };
    pool.close();
    let (removed, kept) = removed?;
    Removal { removed, kept }.finish(&mut Out::stdout(args.json.format()))
}
