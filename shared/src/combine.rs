//! One request for what several tasks want at the same time: most of what is asked is small, and a request costs a server much more than the
//! little in it.

use std::{
    collections::{HashMap, VecDeque, hash_map::Entry},
    fmt,
    hash::Hash,
    sync::Arc,
};

use futures::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Answers requests together, those of each key for themselves: those that come while others are answered are the next. Nothing is waited for.
/// Cheap to clone; clones answer together.
pub struct RequestCombiner<K, Q, A> {
    lines: Arc<CombinerLines<K, Q, A>>,
}

/// Answers questions of one key, in their order.
type AnswerTogether<K, Q, A> = dyn Fn(K, Vec<Q>) -> BoxFuture<'static, Vec<A>> + Send + Sync;

struct CombinerLines<K, Q, A> {
    most: usize,
    weight: fn(&Q) -> usize,
    answer: Box<AnswerTogether<K, Q, A>>,
    /// What waits, by the keys for which somebody is at work.
    waiting: Mutex<HashMap<K, VecDeque<PendingRequest<Q, A>>>>,
}

struct PendingRequest<Q, A> {
    question: Q,
    answer: oneshot::Sender<A>,
}

impl<K, Q, A> RequestCombiner<K, Q, A>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    Q: Send + 'static,
    A: Send + 'static,
{
    /// Has `answer` answer all questions that it is given, in their order. It is given no more at a time than weigh `most` together, or one.
    pub fn new<F>(
        most: usize,
        weight: fn(&Q) -> usize,
        answer: impl Fn(K, Vec<Q>) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let answer =
            Box::new(move |key, questions| Box::pin(answer(key, questions)) as BoxFuture<'static, _>);
        Self { lines: Arc::new(CombinerLines { most, weight, answer, waiting: Mutex::default() }) }
    }

    /// The answer; none when answering panicked. It is given on a task of its own, so that whoever goes away takes nobody else's along.
    pub async fn ask(&self, key: K, question: Q) -> Option<A> {
        let (answer, answered) = oneshot::channel();
        let request = PendingRequest { question, answer };
        let is_first = match self.lines.waiting.lock().entry(key.clone()) {
            Entry::Occupied(mut line) => {
                line.get_mut().push_back(request);
                false
            }
            Entry::Vacant(line) => {
                line.insert(VecDeque::from([request]));
                true
            }
        };
        if is_first {
            let mut line = CombinerLine { lines: Arc::clone(&self.lines), key, is_over: false };
            tokio::spawn(async move { line.work().await });
        }
        answered.await.ok()
    }
}

/// The work on what is asked for one key. When it ends, whoever asks next begins anew.
struct CombinerLine<K: Eq + Hash, Q, A> {
    lines: Arc<CombinerLines<K, Q, A>>,
    key: K,
    /// The line was empty, and is gone.
    is_over: bool,
}

impl<K: Clone + Eq + Hash, Q, A> CombinerLine<K, Q, A> {
    async fn work(&mut self) {
        while let Some((questions, asked)) = self.next() {
            let answers = (self.lines.answer)(self.key.clone(), questions).await;
            for (asked, answer) in asked.into_iter().zip(answers) {
                // Whoever went away meanwhile wants nothing any more.
                let _ = asked.send(answer);
            }
        }
    }

    /// The next questions with those who asked them; none when the line is empty, and then it is gone.
    fn next(&mut self) -> Option<(Vec<Q>, Vec<oneshot::Sender<A>>)> {
        let CombinerLines { most, weight, waiting, .. } = &*self.lines;
        let mut waiting = waiting.lock();
        let line = waiting.get_mut(&self.key)?;
        line.retain(|request| !request.answer.is_closed());
        let taken = take(line, *most, *weight);
        if taken.is_none() {
            waiting.remove(&self.key);
            self.is_over = true;
        }
        taken
    }
}

impl<K: Eq + Hash, Q, A> Drop for CombinerLine<K, Q, A> {
    fn drop(&mut self) {
        if !self.is_over {
            // Answering panicked: those who wait are told that nobody will answer.
            let _unanswered = self.lines.waiting.lock().remove(&self.key);
        }
    }
}

/// The first of the requests, as many as weigh `most` together, and one in any case.
fn take<Q, A>(
    waiting: &mut VecDeque<PendingRequest<Q, A>>,
    most: usize,
    weight: fn(&Q) -> usize,
) -> Option<(Vec<Q>, Vec<oneshot::Sender<A>>)> {
    let (mut questions, mut asked, mut sum) = (Vec::new(), Vec::new(), 0);
    while let Some(request) = waiting.pop_front() {
        sum += weight(&request.question);
        if sum > most && !questions.is_empty() {
            waiting.push_front(request);
            break;
        }
        questions.push(request.question);
        asked.push(request.answer);
    }
    (!questions.is_empty()).then_some((questions, asked))
}

impl<K, Q, A> Clone for RequestCombiner<K, Q, A> {
    fn clone(&self) -> Self {
        Self { lines: Arc::clone(&self.lines) }
    }
}

impl<K, Q, A> fmt::Debug for RequestCombiner<K, Q, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestCombiner").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, future::join_all};
    use tokio::sync::Semaphore;

    use super::*;

    #[tokio::test]
    async fn what_is_asked_meanwhile_is_answered_together_and_whoever_is_gone_is_left_out() {
        let (turns, asked) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let combiner = {
            let (turns, asked) = (Arc::clone(&turns), Arc::clone(&asked));
            // No more than three of these at a time.
            RequestCombiner::new(
                3,
                |_| 1,
                move |key, questions: Vec<u32>| {
                    let (turns, asked) = (Arc::clone(&turns), Arc::clone(&asked));
                    async move {
                        asked.lock().push((key, questions.clone()));
                        if key == 'a' {
                            turns.acquire().await.unwrap().forget();
                        }
                        questions.into_iter().map(|question| question * 10).collect()
                    }
                },
            )
        };
        let mut first = std::pin::pin!(combiner.ask('a', 1));
        while asked.lock().is_empty() {
            assert!(first.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        let mut gone = Box::pin(combiner.ask('a', 2));
        let mut later: Vec<_> = (3..7).map(|question| Box::pin(combiner.ask('a', question))).collect();
        for waiting in later.iter_mut().chain([&mut gone]) {
            assert!(waiting.as_mut().now_or_never().is_none());
        }
        assert_eq!(combiner.ask('b', 1).await, Some(10), "others do not wait for it");
        drop(gone);
        turns.add_permits(10);
        assert_eq!(first.await, Some(10));
        assert_eq!(join_all(later).await, [Some(30), Some(40), Some(50), Some(60)]);
        let asked = asked.lock();
        let ours: Vec<_> =
            asked.iter().filter(|(key, _)| *key == 'a').map(|(_, together)| together).collect();
        assert_eq!(ours, [&vec![1], &vec![3, 4, 5], &vec![6]]);
        assert!(combiner.lines.waiting.lock().is_empty(), "nothing is left of it");
    }

    #[tokio::test]
    async fn a_panic_is_told_to_those_who_wait_and_not_to_whoever_asks_then() {
        let combiner = RequestCombiner::new(
            1,
            |_| 1,
            |(), questions: Vec<u32>| async move {
                assert_ne!(questions, [0], "as the test wants it");
                questions
            },
        );
        let (first, second) = tokio::join!(combiner.ask((), 0), combiner.ask((), 1));
        assert_eq!((first, second), (None, None));
        assert_eq!(combiner.ask((), 2).await, Some(2));
    }
}
