"""Whether brokers, topics, rights and the state folder are as a job needs them: findings for people."""
