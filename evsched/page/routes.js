// Addresses of the API in one place. Everything that names a seq has an answer that never changes.

const query = (entries) => {
  const kept = Object.entries(entries).filter(([, value]) => value !== undefined && value !== "" && value !== null);
  return kept.length ? `?${new URLSearchParams(kept)}` : "";
};
const part = encodeURIComponent;

/** Rows of a view at a seq; `narrow`: queue, application, node. */
export const rows = (at, view, limit, narrow = {}) => `/v1/at/${at}/${view}${query({ limit, ...narrow })}`;
/** How full the nodes are, for one resource: columns, a value for each node. */
export const loads = (at, resource) => `/v1/at/${at}/loads${query({ resource })}`;
/** One row. */
export const row = (at, view, key) => `/v1/at/${at}/${view}/${part(key)}`;
/** Events behind a seq, up to another, a line each; `narrow`: types, queue, application. */
export const events = (after, until, narrow = {}) =>
  `/v1/events${query({ after, until, form: "ndjson", ...narrow })}`;
/** Why an ask waits, or an allocation runs, at a seq. */
export const explain = (at, subject) => `/v1/at/${at}/explain/${part(subject)}`;
/** What changed between two seqs. */
export const diff = (from, to) => `/v1/diff${query({ from, to })}`;
/** The first event after which an expression holds. */
export const bisect = (expression, from) => `/v1/bisect${query({ expression, from })}`;
/** The ready audit questions, and one of them. */
export const audits = () => "/v1/audit";
export const audit = (name, narrowed) => `/v1/audit/${part(name)}${query(narrowed)}`;
/** What the last verification of this server came to; POST begins a new one. */
export const verification = () => "/v1/verify";
/** The configuration in force at a seq; whether another one is valid; POST: try one on the past. */
export const configuration = (at) => `/v1/at/${at}/configuration`;
export const checkConfiguration = () => "/v1/configuration/check";
export const whatIf = () => "/v1/whatif";
/** How a job stands; DELETE cancels it. */
export const job = (id) => `/v1/jobs/${part(id)}`;
/** Which log this is, and how far it goes. */
export const log = () => "/v1/log";
/** The same as a stream that goes on. */
export const logStream = () => "/v1/log/stream";

/** Buckets of a strip: one for every few pixels of a wide screen. */
export const BUCKETS = 240;

/** A stretch of the log. @param start the event before it; @param end its last event; @param lanes
 *    leaves whose usage is wanted: those in a queue, "*" for all; @param scale events or time. */
export const timeline = ({ start = 0, end, lanes, scale }) =>
  `/v1/timeline${query({ start, end, buckets: BUCKETS, scale, lanes })}`;
