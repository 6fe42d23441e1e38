// Flux's own type checker on every query of the Flux editions.
//
// Usage: node flux.js QUERIES, a JSON list of {name, query} with Grafana's variables replaced.

const fs = require('fs');
const { Flux } = require('@influxdata/flux-lsp-node');

// What Grafana gives to each query.
const GIVEN = `option v = {
  timeRangeStart: 2026-01-01T00:00:00Z,
  timeRangeStop: 2026-01-02T00:00:00Z,
  windowPeriod: 10s,
  defaultBucket: "jobtrace",
}
`;

function isValid(query) {
  const lines = query.split('\n');
  const imports = lines.filter((line) => line.startsWith('import '));
  const rest = lines.filter((line) => !line.startsWith('import '));
  try {
    return new Flux([...imports, GIVEN, ...rest].join('\n')).is_valid();
  } catch (error) {
    return false;
  }
}

const queries = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const bad = queries.filter(({ query }) => !isValid(query));
bad.forEach(({ name, query }) => console.error(`${name} is no valid Flux:\n${query}`));
// A checker that takes everything would check nothing.
const wrong = [
  'from(bucket: 1) |> range(start: v.timeRangeStart)',
  'from(bucket: v.defaultBucket) |> range(start: v.begin)',
  'from(bucket: v.defaultBucket) |> rage(start: v.timeRangeStart)',
  'from(bucket: v.defaultBucket) |> range(start: v.timeRangeStart) |> map(fn: (r) => ({r with _value: 1.0 + "a"}))',
];
const taken = wrong.filter(isValid);
taken.forEach((query) => console.error(`the checker takes ${query}`));
console.log(`${queries.length} queries`);
process.exit(bad.length + taken.length === 0 && queries.length > 40 ? 0 : 1);
