"""Jobs: crawls with a name, a state, a place in a queue and perhaps a schedule.

states      the states of a job and the events that change them: one table
model       the values: a job, its runs, a request for one, messages to its process
book        the jobs in a file, so that they survive the service
runner      starts jobs when it is their turn, hears how they end, starts them again
process     the process of one job, and the work of each kind
kinds       the kinds of jobs, one row each
watch       the reports of a running job, and the reasons to end it
"""
