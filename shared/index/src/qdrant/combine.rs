//! One request for what several tasks want at the same time. Most documents are small, and a request costs the server much more than the
//! few points in it.

use std::{collections::VecDeque, future::Future};

use tokio::sync::{mpsc, oneshot};

/// Requests that may wait while others are under way; whoever comes then waits to be heard.
const WAITING: usize = 64;

/// Answers requests together: those that come while others are answered are the next. Nothing is waited for.
#[derive(Debug)]
pub(super) struct RequestCombiner<Q, A> {
    sender: mpsc::Sender<PendingRequest<Q, A>>,
}

#[derive(Debug)]
struct PendingRequest<Q, A> {
    question: Q,
    answer: oneshot::Sender<A>,
}

impl<Q: Send + 'static, A: Send + 'static> RequestCombiner<Q, A> {
    /// Has `answer` answer all questions that it is given, in their order, in the background until this goes. It is given no more at a time
    /// than weigh `most` together, or one.
    pub(super) fn new<F>(
        most: usize,
        weight: impl Fn(&Q) -> usize + Send + 'static,
        answer: impl Fn(Vec<Q>) -> F + Send + 'static,
    ) -> Self
    where
        F: Future<Output = Vec<A>> + Send + 'static,
    {
        let (sender, mut requests) = mpsc::channel::<PendingRequest<Q, A>>(WAITING);
        tokio::spawn(async move {
            let (mut arrived, mut waiting) = (Vec::new(), VecDeque::new());
            loop {
                if waiting.is_empty() && requests.recv_many(&mut arrived, WAITING).await == 0 {
                    return;
                }
                waiting.extend(arrived.drain(..));
                // Whoever is gone wants nothing any more.
                waiting.retain(|request| !request.answer.is_closed());
                let (questions, asked) = take(&mut waiting, most, &weight);
                if questions.is_empty() {
                    continue;
                }
                for (asked, answer) in asked.into_iter().zip(answer(questions).await) {
                    // Nor does whoever went meanwhile.
                    let _ = asked.send(answer);
                }
            }
        });
        Self { sender }
    }

    /// The answer; none only when the process ends.
    pub(super) async fn ask(&self, question: Q) -> Option<A> {
        let (answer, answered) = oneshot::channel();
        self.sender.send(PendingRequest { question, answer }).await.ok()?;
        answered.await.ok()
    }
}

/// The first of the requests, as many as weigh `most` together, and one in any case.
fn take<Q, A>(
    waiting: &mut VecDeque<PendingRequest<Q, A>>,
    most: usize,
    weight: impl Fn(&Q) -> usize,
) -> (Vec<Q>, Vec<oneshot::Sender<A>>) {
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
    (questions, asked)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures::{FutureExt, future::join_all};
    use parking_lot::Mutex;
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
                move |questions: Vec<u32>| {
                    let (turns, asked) = (Arc::clone(&turns), Arc::clone(&asked));
                    async move {
                        asked.lock().push(questions.clone());
                        turns.acquire().await.unwrap().forget();
                        questions.into_iter().map(|question| question * 10).collect()
                    }
                },
            )
        };
        let mut first = std::pin::pin!(combiner.ask(1));
        while asked.lock().is_empty() {
            assert!(first.as_mut().now_or_never().is_none());
            tokio::task::yield_now().await;
        }
        let mut gone = Box::pin(combiner.ask(2));
        let later: Vec<_> = (3..7).map(|question| Box::pin(combiner.ask(question))).collect();
        assert!(gone.as_mut().now_or_never().is_none());
        drop(gone);
        turns.add_permits(10);
        assert_eq!(first.await, Some(10));
        assert_eq!(join_all(later).await, [Some(30), Some(40), Some(50), Some(60)]);
        let asked = asked.lock();
        let questions: Vec<u32> = asked.iter().skip(1).flatten().copied().collect();
        assert_eq!(questions, [3, 4, 5, 6]);
        assert!(asked.iter().all(|together| together.len() <= 3), "{asked:?}");
    }
}
