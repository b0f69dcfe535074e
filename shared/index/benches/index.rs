//! Speed and memory of the embedded index: `cargo bench -p lectern-index --bench index`, with a number of passages as the
//! argument for a shorter run (`-- 10000`). Prints tables; the texts and vectors are made up, the same in every run.
#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::cast_precision_loss,
    reason = "a program for people"
)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "numbers of a made-up corpus are small"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures::future::join_all;
use lectern_db::{self as db, Db, index_segments};
use lectern_index::{
    IndexQuery, LocalIndex, SearchIndex, SpaceVector,
    score::{BlockSelection, DenseSearch, LexicalSearch},
    segment::{BlockKind, MergeSource, PostingsBlock, Segment, SegmentBuilder},
};
use lectern_shared::{
    config::DatabaseLocation,
    ids::{GenerationId, WorkspaceId},
};
use uuid::Uuid;

/// Numbers in a vector: those of the default model.
const DIMENSION: usize = 384;
const SPACE: Uuid = Uuid::from_u128(1);
/// The setting's default.
const CACHE: u64 = 512 << 20;
/// Candidates of each kind.
const DEPTH: usize = 100;
const QUESTIONS: usize = 400;
/// Different words of the corpus.
const VOCABULARY: usize = 60_000;

/// Words that make up a large part of any English text, most frequent first.
const FUNCTION_WORDS: &str = "the of and to in a is that for it was on with as be by at this are from or his an which \
    not have but had they you were their one all we can her has there been if more when will would who so no out up \
    into than them some what could other about these its only";

/// `SplitMix64`: all the randomness that a made-up corpus needs.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// At least 0, less than 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, end: usize) -> usize {
        (self.unit() * end as f64) as usize
    }
}

/// Texts whose words follow Zipf's law, and vectors in clusters.
struct Corpus {
    words: Vec<String>,
    /// The sum of the frequencies up to each word.
    cumulative: Vec<f64>,
    centres: Vec<Vec<f32>>,
}

impl Corpus {
    fn new() -> Self {
        let mut random = Random(1);
        let mut words: Vec<String> = FUNCTION_WORDS.split_whitespace().map(str::to_owned).collect();
        let onsets =
            ["b", "c", "d", "f", "g", "h", "l", "m", "n", "p", "r", "s", "t", "st", "tr", "pl", "sh", "th"];
        let rimes =
            ["ane", "ent", "is", "or", "ack", "ill", "ound", "er", "ight", "all", "on", "ead", "ine", "ous"];
        while words.len() < VOCABULARY {
            let syllables = 2 + random.below(3);
            let word: String = (0..syllables)
                .map(|_| [onsets[random.below(onsets.len())], rimes[random.below(rimes.len())]].concat())
                .collect();
            words.push(word);
        }
        let mut sum = 0.0;
        let cumulative = (0..words.len())
            .map(|rank| {
                sum += 1.0 / (rank as f64 + 2.7);
                sum
            })
            .collect();
        let centres = (0..200).map(|_| unit(&mut random, None)).collect();
        Self { words, cumulative, centres }
    }

    fn text(&self, random: &mut Random, words: usize) -> String {
        let total = self.cumulative.last().unwrap();
        let mut text = String::with_capacity(words * 7);
        for _ in 0..words {
            let at = random.unit() * total;
            let rank = self.cumulative.partition_point(|sum| *sum <= at);
            text.push_str(&self.words[rank]);
            text.push(' ');
        }
        text
    }

    fn vector(&self, random: &mut Random) -> Vec<f32> {
        let centre = random.below(self.centres.len());
        unit(random, Some(&self.centres[centre]))
    }

    /// Passages of 80 to 220 words, built into the segments of documents of these sizes, on every core.
    fn build(self: &Arc<Self>, documents: &[usize]) -> Vec<Vec<(Vec<u8>, u32)>> {
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let next = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let documents: Arc<Vec<usize>> = Arc::new(documents.to_vec());
        let threads: Vec<_> = (0..cores)
            .map(|_| {
                let (corpus, next, documents) = (Arc::clone(self), Arc::clone(&next), Arc::clone(&documents));
                std::thread::spawn(move || {
                    let mut built = Vec::new();
                    loop {
                        let at = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(passages) = documents.get(at) else { return built };
                        built.push((at, corpus.document(at as u64, *passages)));
                    }
                })
            })
            .collect();
        let mut built: Vec<_> = threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect();
        built.sort_unstable_by_key(|(at, _)| *at);
        built.into_iter().map(|(_, segments)| segments).collect()
    }

    fn document(&self, seed: u64, passages: usize) -> Vec<(Vec<u8>, u32)> {
        let mut random = Random(seed.wrapping_mul(1_000_003) + 17);
        let mut segments = Vec::new();
        let new = |first| SegmentBuilder::with_space(first, SPACE, DIMENSION).unwrap();
        let mut builder = new(0);
        for ordinal in 0..passages as u32 {
            if builder.is_full() {
                let count = builder.chunk_count() as u32;
                segments.push((std::mem::replace(&mut builder, new(ordinal)).finish(), count));
            }
            let words = 80 + random.below(140);
            builder.push(&self.text(&mut random, words), Some(&self.vector(&mut random))).unwrap();
        }
        let count = builder.chunk_count() as u32;
        segments.push((builder.finish(), count));
        segments
    }
}

/// A vector of length 1, near `centre` when there is one.
fn unit(random: &mut Random, centre: Option<&[f32]>) -> Vec<f32> {
    let mut vector: Vec<f32> = (0..DIMENSION)
        .map(|at| {
            let noise = (0..4).map(|_| random.unit() as f32 - 0.5).sum::<f32>() * 0.1;
            noise + centre.map_or(0.0, |centre| centre[at])
        })
        .collect();
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    for number in &mut vector {
        *number /= length;
    }
    vector
}

/// A line of `/proc/self/status` in MiB; 0 where there is none.
fn memory(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(':'));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}

fn percentile(sorted: &[Duration], percent: usize) -> f64 {
    let at = (sorted.len() * percent / 100).min(sorted.len() - 1);
    sorted[at].as_secs_f64() * 1e3
}

/// A layout of the same number of passages.
struct Layout {
    name: &'static str,
    /// The passages of each document.
    documents: Vec<usize>,
    /// The agents: how many passages, in which documents.
    agents: Vec<(usize, std::ops::Range<usize>)>,
}

fn layouts(passages: usize) -> Vec<Layout> {
    let even = |name, size: usize| {
        let count = passages / size;
        let agents = [100, 1_000, passages].map(|wanted| {
            let documents = (wanted / size).clamp(1, count);
            // From the middle, so that nothing is at the beginning by chance.
            let first = (count - documents) / 2;
            (documents * size, first..first + documents)
        });
        Layout { name, documents: vec![size; count], agents: agents.into() }
    };
    vec![
        Layout {
            name: "one large",
            documents: vec![100, 1_000, passages],
            agents: vec![(100, 0..1), (1_000, 1..2), (passages, 2..3)],
        },
        even("of 100 each", 100),
        even("of 2 each", 2),
    ]
}

struct Store {
    db: Db,
    workspace: WorkspaceId,
    generations: Vec<GenerationId>,
    bytes: usize,
    _folder: tempfile::TempDir,
}

async fn store(documents: Vec<Vec<(Vec<u8>, u32)>>) -> Store {
    let folder = tempfile::tempdir().unwrap();
    let db = db::connect(&DatabaseLocation::Sqlite(folder.path().join("bench.db"))).await.unwrap();
    db::migrate::run(&db).await.unwrap();
    let workspace = WorkspaceId::generate();
    let mut bytes = 0;
    let mut generations = Vec::with_capacity(documents.len());
    for some in documents.chunks(1_000) {
        let mut tx = db.begin().await.unwrap();
        for segments in some {
            let generation = GenerationId::generate();
            for (part, (data, chunks)) in (0..).zip(segments) {
                bytes += data.len();
                index_segments::insert(&mut tx, workspace, generation, part, *chunks, data).await.unwrap();
            }
            generations.push(generation);
        }
        tx.commit().await.unwrap();
    }
    Store { db, workspace, generations, bytes, _folder: folder }
}

/// The questions: a few words each, as frequent as in the texts, and a vector.
fn questions(corpus: &Corpus) -> Vec<(String, Vec<f32>)> {
    let mut random = Random(99);
    (0..QUESTIONS)
        .map(|_| {
            let words = 4 + random.below(8);
            (corpus.text(&mut random, words), corpus.vector(&mut random))
        })
        .collect()
}

fn query(store: &Store, generations: &[GenerationId], (text, vector): &(String, Vec<f32>)) -> IndexQuery {
    IndexQuery {
        workspace: store.workspace,
        generations: generations.to_vec(),
        others: Vec::new(),
        languages: Vec::new(),
        text: text.clone(),
        vectors: vec![SpaceVector { space: SPACE, vector: vector.clone() }],
        depth: DEPTH,
    }
}

async fn searches(corpus: &Arc<Corpus>, passages: usize) {
    println!("\nHybrid search, SQLite, {DIMENSION} dimensions, depth {DEPTH}, times in ms");
    println!(
        "{:<12} {:>9} {:>9} {:>7} {:>7} {:>7} {:>7} {:>7}  together: 2 p50, 8 p50, per second",
        "documents", "generat.", "passages", "first", "best", "p50", "p95", "p99"
    );
    let questions = questions(corpus);
    for Layout { name, documents, agents } in layouts(passages) {
        let store = store(corpus.build(&documents)).await;
        let before = memory("VmRSS");
        let index = LocalIndex::new(store.db.clone(), CACHE);
        // The largest first: what comes after finds everything in memory, and is a part of much more.
        for (count, range) in agents.iter().rev() {
            let generations = &store.generations[range.clone()];
            let start = Instant::now();
            let found = index.search(query(&store, generations, &questions[0])).await.unwrap();
            let first = start.elapsed().as_secs_f64() * 1e3;
            assert_eq!(found.dense[0].len(), DEPTH.min(*count));
            let mut times = Vec::with_capacity(questions.len());
            for question in &questions {
                let query = query(&store, generations, question);
                let start = Instant::now();
                index.search(query).await.unwrap();
                times.push(start.elapsed());
            }
            times.sort_unstable();
            let mut together = Vec::new();
            for at_once in [2, 8] {
                let start = Instant::now();
                let workers = (0..at_once).map(|worker| {
                    let (index, store, questions) = (&index, &store, &questions);
                    async move {
                        let mut times = Vec::new();
                        for question in questions.iter().skip(worker).step_by(at_once) {
                            let query = query(store, generations, question);
                            let start = Instant::now();
                            index.search(query).await.unwrap();
                            times.push(start.elapsed());
                        }
                        times
                    }
                });
                let mut times: Vec<Duration> = join_all(workers).await.into_iter().flatten().collect();
                let rate = times.len() as f64 / start.elapsed().as_secs_f64();
                times.sort_unstable();
                together.push((percentile(&times, 50), rate));
            }
            println!(
                "{name:<12} {:>9} {count:>9} {first:>7.1} {:>7.2} {:>7.2} {:>7.2} {:>7.2}  {:.2} {:.2} {:.0}",
                generations.len(),
                percentile(&times, 0),
                percentile(&times, 50),
                percentile(&times, 95),
                percentile(&times, 99),
                together[0].0,
                together[1].0,
                together[1].1,
            );
        }
        println!(
            "{name:<12} stored {:.0} MiB, cached {:.0} MiB, memory {:.0} MiB more than before, peak of the program {:.0} MiB",
            store.bytes as f64 / 1_048_576.0,
            index.cached_bytes() as f64 / 1_048_576.0,
            memory("VmRSS") - before,
            memory("VmHWM"),
        );
    }
}

fn building(corpus: &Corpus) {
    let mut random = Random(5);
    let passages: Vec<(String, Vec<f32>)> = (0..3_000)
        .map(|_| {
            let words = 80 + random.below(140);
            (corpus.text(&mut random, words), corpus.vector(&mut random))
        })
        .collect();
    let bytes: usize = passages.iter().map(|(text, _)| text.len()).sum();
    let start = Instant::now();
    let mut builder = SegmentBuilder::with_space(0, SPACE, DIMENSION).unwrap();
    for (text, vector) in &passages {
        builder.push(text, Some(vector)).unwrap();
    }
    let blob = builder.finish();
    let built = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let segment = Segment::from_bytes(blob).unwrap();
    let checked = start.elapsed().as_secs_f64();
    println!(
        "\nSegments: built at {:.1} MB/s of text ({:.0} passages/s), {} bytes a passage, checked at {:.0} MB/s, in {:?}",
        bytes as f64 / built / 1e6,
        passages.len() as f64 / built,
        segment.byte_len() / passages.len(),
        segment.byte_len() as f64 / checked / 1e6,
        segment.language(),
    );
}

/// The kernels, on one thread: the best of many runs is what the machine can do when it does nothing else.
fn scanning(corpus: &Arc<Corpus>, passages: usize) {
    let generation = GenerationId::generate();
    let mut built = Vec::new();
    for (data, _) in corpus.build(&vec![1_000; passages / 1_000]).into_iter().flatten() {
        built.push(Segment::from_bytes(data).unwrap());
    }
    let start = Instant::now();
    let blocks: Vec<BlockSelection> = built
        .chunks(7)
        .map(|segments| {
            let sources: Vec<_> =
                segments.iter().map(|segment| MergeSource::Segment(generation, segment)).collect();
            BlockSelection::all(Arc::new(PostingsBlock::merge(BlockKind::of(&segments[0]), &sources)), |_| 0)
        })
        .collect();
    let merged = start.elapsed().as_secs_f64();
    let stored: usize = built.iter().map(Segment::byte_len).sum();
    drop(built);
    let rows: u32 = blocks.iter().map(BlockSelection::row_count).sum();
    let questions = questions(corpus);
    let (mut dense, mut lexical, mut postings) = (Vec::new(), Vec::new(), 0);
    for (text, vector) in &questions {
        let start = Instant::now();
        let mut search = DenseSearch::new(SPACE, vector.clone(), DEPTH);
        for block in &blocks {
            search.add(block, 0..block.block().row_count());
        }
        assert_eq!(search.finish().len(), DEPTH.min(rows as usize));
        dense.push(start.elapsed());
        let start = Instant::now();
        let mut search = LexicalSearch::new(text);
        for block in &blocks {
            search.count(block);
        }
        postings += blocks
            .iter()
            .flat_map(|block| search.terms(block).iter().map(|term| block.block().postings(*term).0.len()))
            .sum::<usize>();
        let mut scorer = search.score(DEPTH);
        for block in &blocks {
            scorer.add(block);
        }
        scorer.finish();
        lexical.push(start.elapsed());
    }
    dense.sort_unstable();
    lexical.sort_unstable();
    let bytes = rows as usize * DIMENSION * 4;
    println!(
        "\nOne thread, {rows} passages in {} blocks, merged at {:.0} MB/s\n\
         dense: {:.1} GB/s at best, {:.1} at p50 ({:.2} ms)\n\
         lexical: {:.2} ms at best, {:.2} at p50, {:.2} at p95; {} postings a question, stop words included",
        blocks.len(),
        stored as f64 / merged / 1e6,
        bytes as f64 / dense[0].as_secs_f64() / 1e9,
        bytes as f64 / percentile(&dense, 50) / 1e6,
        percentile(&dense, 50),
        percentile(&lexical, 0),
        percentile(&lexical, 50),
        percentile(&lexical, 95),
        postings / questions.len(),
    );
}

fn main() {
    // `cargo bench` adds `--bench`, `cargo test --benches` nothing.
    let passages = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(100_000);
    let corpus = Arc::new(Corpus::new());
    building(&corpus);
    scanning(&corpus, passages);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(searches(&corpus, passages));
}
