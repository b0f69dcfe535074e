// What the clients of JavaScript have in common: where the service is, and what a citation has to be.

export const AGENT = process.env.LECTERN_AGENT;
export const QUESTION = process.env.LECTERN_QUESTION;
// Words that stand in the document, and so in the answer.
export const FACT = process.env.LECTERN_FACT;

const MARKER = /\[[0-9]+(, ?[0-9]+)*\]/;

export function check(holds, what) {
  if (!holds) throw new Error(`wrong: ${what}`);
}

export function checkAnswer(text) {
  check(text.includes(FACT), `the answer does not say ${FACT}: ${text}`);
  check(MARKER.test(text), `the answer cites nothing: ${text}`);
}

// The service counts code points, and a string of JavaScript counts UTF-16 units.
export function checkPlace(text, start, end) {
  const piece = Array.from(text).slice(start, end).join("");
  check(MARKER.exec(piece)?.[0] === piece, `${start}..${end} is no marker but ${piece} of ${text}`);
}

export function done(facts) {
  console.log(JSON.stringify({ ok: true, ...facts }));
}
