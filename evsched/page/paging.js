// Lists come in pages at one seq; the next page has its address in the one before.

import { useCallback, useEffect, useRef, useState } from "./vendor/preact-hooks.js";
import { ask, useAnswer } from "./api.js";

/** The rows of a list, the first page at once and the others by `more`. null asks nothing. */
export function useRows(path) {
  const first = useAnswer(path);
  const [further, setFurther] = useState({ of: null, rows: [], next: null, error: null });
  const asking = useRef(null);
  const of = first.answer ? first.path : null;
  const here = further.of === of ? further : { rows: [], next: first.answer?.next ?? null, error: null };
  useEffect(() => () => asking.current?.abort(), []);
  const more = useCallback(async () => {
    if (!here.next || asking.current) return;
    const abort = new AbortController();
    asking.current = abort;
    try {
      const page = await ask(here.next, { signal: abort.signal });
      setFurther({ of, rows: [...here.rows, ...page.rows], next: page.next, error: null });
    } catch (error) {
      if (!abort.signal.aborted) setFurther({ ...here, of, next: null, error });
    }
    asking.current = null;
  }, [of, here.next, here.rows]);
  const rows = first.answer ? (here.rows.length ? [...first.answer.rows, ...here.rows] : first.answer.rows) : [];
  return {
    rows, more, total: first.answer?.total ?? 0, seq: first.answer?.seq, time: first.answer?.time,
    error: first.error ?? here.error, current: first.current, known: Boolean(first.answer),
  };
}
