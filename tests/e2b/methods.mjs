// Prints the public methods of the classes that a sandbox of the npm packages is made of, as JSON:
// {"Sandbox": ["create", …], …}. What the types call private or protected is not public.
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const core = await import('e2b')
const code = await import('@e2b/code-interpreter')

function hiddenOf(name) {
  const types = readFileSync(join(dirname(require.resolve(name)), 'index.d.ts'), 'utf8')
  const marked = /\b(?:private|protected)\s+(?:static\s+|readonly\s+|async\s+|get\s+)*(\w+)/g
  return [...types.matchAll(marked)].map((match) => match[1])
}
const hidden = new Set([...hiddenOf('e2b'), ...hiddenOf('@e2b/code-interpreter')])

function methodsOf(type) {
  const found = new Set()
  const isPlain = (value) => value && value !== Object.prototype && value !== Function.prototype
  for (const start of [type, type.prototype])
    for (let at = start; isPlain(at); at = Object.getPrototypeOf(at))
      for (const [name, entry] of Object.entries(Object.getOwnPropertyDescriptors(at)))
        if (typeof entry.value === 'function' && name !== 'constructor') found.add(name)
  return [...found].filter((name) => !hidden.has(name) && !name.startsWith('_')).sort()
}

// Their classes are not exported, but a sandbox has one of each; in debug mode nobody is asked.
const sandbox = await core.Sandbox.create({ debug: true, apiKey: `e2b_${'0'.repeat(40)}` })
const classes = {
  Sandbox: core.Sandbox,
  CodeSandbox: code.Sandbox,
  Commands: sandbox.commands.constructor,
  Pty: sandbox.pty.constructor,
  Filesystem: sandbox.files.constructor,
  Git: sandbox.git?.constructor,
  CommandHandle: core.CommandHandle,
  WatchHandle: core.WatchHandle,
  Template: core.Template,
}
const listed = Object.entries(classes).filter(([, type]) => type)
console.log(JSON.stringify(Object.fromEntries(listed.map(([name, type]) => [name, methodsOf(type)]))))
